"""Starts the programs of agents, graders and jobs: each child is blocked on a pipe until its identity is journalled.

The identities of all that one turn starts are one line of the journal. A supervisor that dies before it is written has
started nobody: a child whose pipe is closed exits.
"""

from collections.abc import Iterator
from concurrent.futures import Executor

from attempts.files import write_bytes
from coral.agent_setup.clone import CloneRepair
from coral.agent_setup.command import program_of
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.jobs import LAUNCH
from coral.fleet.process_key import of_grade
from coral.fleet.run_state import Fleet
from coral.grading import checkout
from coral.journal import Journal
from coral.processes.launches import Launches
from coral.processes.process import HeldChild, Program
from coral.supervisor import job_files
from coral.supervisor.context import RunContext
from coral.supervisor.output import OutputMonitors
from coral.views.prompt import prompt
from coral.views.reasons import reason_data, reason_text
from coral.views.report import Report


class Starter:
    def __init__(
        self,
        run_context: RunContext,
        launches: Launches,
        journal: Journal,
        monitors: OutputMonitors,
        report: Report,
        pool: Executor,
    ) -> None:
        """`pool`: the threads in which a spoiled clone is made again."""
        self._context = run_context
        self._launches = launches
        self._journal = journal
        self._monitors = monitors
        self._report = report
        self._clones = CloneRepair(run_context, pool)
        self._held: dict[str, tuple[int, HeldChild]] = {}

    def start_agent(self, action: do.Spawn, fleet: Fleet, now: on.Moment) -> None:
        agent, launch, layout = action.agent, action.launch, self._context.layout
        self._clones.restore(agent)
        text, warnings = prompt(self._context, fleet, action, now.run_time)
        for warning in warnings:
            self._report.note(now, "warning", warning, agent)
        write_bytes(layout.prompt(agent, launch), text.encode("utf-8", "replace"), durable=False)
        program, session = program_of(self._context, fleet, action, self._launches.tag(agent, launch))
        self._hold(agent, launch, program, now)
        monitor = self._monitors.open(agent, launch, session, now.run_time)
        names = list(dict.fromkeys(message.name for message in action.messages))
        said = f"launch {launch} ({reason_text(action.reason)}){': ' + ', '.join(names) if names else ''}"
        given = {"launch": launch, "reason": reason_data(action.reason), "heartbeats": names}
        self._report.note(now, "spawned", said, agent, **given)
        self._report.beat(monitor, now)

    def start_grader(self, action: do.StartGrader, now: on.Moment) -> None:
        who = of_grade(action.number)
        tag = self._launches.tag(who, action.launch)
        program = checkout.grader_program(self._context.layout, self._context.config.grader, action, tag)
        self._hold(who, action.launch, program, now)

    def start_job(self, action: do.StartJob, now: on.Moment) -> None:
        job = action.job
        program = job_files.program(self._context, job, self._launches.tag(job.who, LAUNCH))
        self._hold(job.who, LAUNCH, program, now)
        job_files.show_begin(self._context.layout, job)

    def cancel(self, who: str) -> None:
        """Never let a child go whose start failed on the way."""
        if held := self._held.pop(who, None):
            held[1].abandon()
            self._launches.abandon(who)

    def commit(self) -> Iterator[on.SpawnFailed]:
        """Journal the identities of the children that wait, then let them go. Where that cannot be written, nobody
        starts."""
        if not self._held:
            return
        held, self._held = self._held, {}
        try:
            self._journal.record_started({who: (launch, child.identity) for who, (launch, child) in held.items()})
        except OSError as error:
            for who, (launch, child) in held.items():
                child.abandon()
                self._launches.abandon(who)
                yield on.SpawnFailed(who=who, launch=launch, reason=str(error))
            return
        for _, child in held.values():
            child.release()

    def _hold(self, who: str, launch: int, program: Program, now: on.Moment) -> None:
        """Start a program up to its pipe. OSError where that is not possible."""
        self._held[who] = (launch, self._launches.hold(who, launch, program, now.run_time))
