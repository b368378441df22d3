"""Starts the programs of agents, graders and jobs: each child is blocked on a pipe until its identity is journalled.

The identities of all children that one turn starts are one line of the journal. If the supervisor dies before that line
is written, no program has started: a child whose pipe is closed exits.
"""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from coral.agent_setup.launch import LaunchSetup, set_aside
from coral.agent_setup.remote import bridge_for
from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.jobs import JOB_LAUNCH
from coral.fleet.process_key import of_grade
from coral.fleet.run_state import Fleet
from coral.grading import checkout
from coral.grading.kinds import prestart
from coral.grading.remote import bridge_to
from coral.journal import Journal
from coral.processes.launches import Launches
from coral.processes.prestarted import PrestartedInterpreter
from coral.processes.process import HeldChild, Program
from coral.supervisor.context import RunContext
from coral.supervisor.output_monitor import OutputMonitors
from coral.views.report import Report, show_job

FIRST_LAUNCH = 1


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
        self._layout = run_context.layout
        self._config, self._grader = run_context.config, run_context.config.grader
        self._launches = launches
        self._journal = journal
        self._monitors = monitors
        self._report = report
        self._context, self._pool = run_context, pool
        self._setups: dict[str, LaunchSetup] = {}
        self._held: dict[str, tuple[int, HeldChild]] = {}
        self._interpreters: dict[str, PrestartedInterpreter] = {}  # by the tag of their launch
        of_grades = bridge_to(self._grader, self._layout.grader) if self._grader.is_remote else None
        self._bridges = [of_grades, bridge_for(self._layout, self._config)]

    def start_agent(self, action: do.Spawn, fleet: Fleet, now: on.Moment) -> None:
        agent, launch = action.agent, action.launch
        tag = self._launches.tag(agent, launch)
        prepared = self._setup(agent).prepare(action, fleet, now.run_time, tag)
        self._hold(agent, launch, prepared.program, now)
        monitor = self._monitors.open(agent, launch, prepared.session, now.run_time)
        self._report.spawned(now, action, prepared.warnings)
        self._report.beat(monitor, fleet, now)

    def set_member(self, action: do.SetMember) -> None:
        """Change how an agent is driven from its next launch on: by which program, with which model and role."""
        if (setup := self._setups.get(action.agent)) is not None:
            setup.close()  # before the roster changes: the setup still knows which logins the old program has
        self._context.roster.set(action.agent, action.member)
        if action.aside is not None:
            set_aside(self._layout.state(action.agent), action.aside)

    def _setup(self, agent: str) -> LaunchSetup:
        if agent not in self._setups:
            self._setups[agent] = LaunchSetup(self._context, agent, self._pool)
        return self._setups[agent]

    def start_grader(self, action: do.StartGrader, now: on.Moment) -> None:
        who = of_grade(action.number)
        tag = self._launches.tag(who, action.launch)
        command = checkout.grade_command(self._layout, self._config, action, self._context.venv)
        interpreter = self._interpreters.pop(tag, None)
        if interpreter is not None and not interpreter.is_ready():  # somebody killed it
            interpreter.close()
            interpreter = None
        if interpreter is None:
            interpreter = command.prestart(tag, self._launches.make_group(who, action.launch))
        held = self._launches.hold(who, action.launch, command.program(tag), now.run_time, interpreter)
        self._held[who] = (action.launch, held)

    def prestart_interpreter(self, number: int, slots: int) -> None:
        """Start the interpreter of an attempt's grader ahead of time: when its commit is taken in, which takes as long
        as the start. No more are started than `slots`, how many grades can run at once. Where none can be started, as
        on a full disk, the grade starts its own later, or says why it cannot."""
        who = of_grade(number)
        tag = self._launches.tag(who, FIRST_LAUNCH)
        if tag in self._interpreters or len(self._interpreters) >= slots:
            return
        group, venv = self._launches.make_group(who, FIRST_LAUNCH), self._context.venv
        with contextlib.suppress(OSError, CoralError):
            sandbox = checkout.sandbox_of_attempt(self._layout, self._config, number, venv)
            if (interpreter := prestart(self._grader, tag, group, sandbox, venv)) is not None:
                self._interpreters[tag] = interpreter

    def end_interpreter(self, number: int) -> None:
        """End the interpreter of an attempt that was not graded."""
        if interpreter := self._interpreters.pop(self._launches.tag(of_grade(number), FIRST_LAUNCH), None):
            interpreter.close()

    def close(self) -> None:
        """End the interpreters that were not used, and keep the logins that the agents' programs have refreshed."""
        for interpreter in self._interpreters.values():
            interpreter.close()
        for setup in self._setups.values():
            setup.close()
        for bridge in self._bridges:
            if bridge is not None:
                bridge.close()

    def start_job(self, action: do.StartJob, now: on.Moment) -> None:
        job = action.job
        program = self._setup(job.agent).job_program(job, self._launches.tag(job.who, JOB_LAUNCH))
        self._hold(job.who, JOB_LAUNCH, program, now)
        show_job(self._layout, job)

    def cancel(self, who: str) -> None:
        """Abandon a child whose start failed after it was created: it must never run."""
        if held := self._held.pop(who, None):
            held[1].abandon()
            self._launches.abandon(who)

    def record_and_release(self) -> Iterator[on.SpawnFailed]:
        """Journal the identities of the children that wait at their pipes, then let them run. If the journal cannot be
        written, none of them runs, and each yields a `SpawnFailed`."""
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
        """Start a child that waits at its pipe. OSError where that is not possible."""
        self._held[who] = (launch, self._launches.hold(who, launch, program, now.run_time))
