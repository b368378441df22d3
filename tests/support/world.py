"""Simulates a supervisor with its agents, graders and files: `World` performs the actions that `decide` returns.

A history is a list of moves, see `moves`: small tuples that Hypothesis can shrink and a test can keep. A simulated
process obeys signals or ignores them, and the supervisor may die in any decision. Each decision is written as a line of
the journal. Nothing here is random.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stage import assert_quiet_until_its_deadline, attempt_zero, is_untouched

from attempts.record import Attempt, Kind, Submission
from attempts.standing import Scored
from coral.codec import encode
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, OutputCounts, Phase, Spent
from coral.fleet.decide import decide, next_deadline
from coral.fleet.events import Ending, Graded, Outcome, OutputSeen, Used
from coral.fleet.jobs import JOB_LAUNCH
from coral.fleet.members import Member
from coral.fleet.policy import MAX_KILLS
from coral.fleet.reasons import RunEnd
from coral.fleet.rules import Rules
from coral.fleet.run_state import OCCUPYING, Fleet, PendingAttempt
from coral.journal import RecoveredState, difference, fold_lines

NAMES = ("ann", "ben", "cid")
OBEDIENT, NEEDS_TERM, NEEDS_KILL, UNKILLABLE = range(4)  # which signal a process obeys at last
# What the grader says of a tree: a score, or that it fails, makes the grader crash, or hang until it is ended.
SCORES = (1.0, 2.0, 3.0, 2.25, 1.0, 0.0, 4.0)
FAILS, CRASHES, HANGS = 7, 8, 9


@dataclass(slots=True)
class Process:
    """A process of an agent, a grade or a job, with the number of its launch.

    `deaf`: the weakest signal that it obeys. `printed`: whether it has printed anything; `unread`: whether the
    supervisor has not read all of that. `busy`, `reply`, `place`, `count`: the fields of its next `OutputSeen`.
    `silently`: when it last edited a file without printing that, on the run's clock. `used`: output tokens so far.
    `ending`: how it ended, None while it runs; `leftovers`: processes that it started still run then. `lingered_at`:
    when these were last reported.
    """

    who: str
    launch: int
    deaf: int = OBEDIENT
    printed: bool = False
    unread: bool = False
    busy: str = ""
    reply: str = ""
    place: int = 0
    count: OutputCounts = field(default_factory=OutputCounts)
    silently: float | None = None
    used: int = 0
    ending: Ending | None = None
    leftovers: bool = False
    lingered_at: float = -1.0
    printed_inline: list[str] = field(default_factory=list)

    @property
    def is_gone(self) -> bool:
        return self.ending is not None and not self.leftovers


def heard(process: Process) -> OutputSeen:
    """Return the event of all that an agent has printed so far."""
    return OutputSeen(
        agent=process.who,
        launch=process.launch,
        has_prompt=True,
        session=f"session of {process.who}",
        activity=process.busy,
        reply=process.reply,
        place=process.place,
        count=process.count,
    )


def used(process: Process) -> Used:
    """Return the event of all that an agent has used so far."""
    return Used(agent=process.who, launch=process.launch, figure=Spent(output=process.used))


def graded(process: Process, pending: PendingAttempt | None, broken: bool) -> Graded:
    """Return the result of a grade that has ended. `broken`: the grader crashes, whatever it grades."""
    tree = 0 if pending is None or pending.suspicion or pending.is_holdout else int(pending.tree, 16)
    number, launch = int(process.who[1:]), process.launch
    if process.ending is not Ending.CLEAN or broken or tree == CRASHES:
        return Graded(number=number, launch=launch, outcome=Outcome.CRASHED, reason="crashed")
    if tree >= FAILS:
        return Graded(number=number, launch=launch, outcome=Outcome.FAILED, reason="wrong")
    return Graded(number=number, launch=launch, outcome=Outcome.SCORED, score=SCORES[tree])


@dataclass(frozen=True, slots=True)
class Turn:
    """One decision that was written to the journal."""

    clock: float
    events: tuple[on.Event, ...]
    before: Fleet
    after: Fleet
    actions: tuple[do.Action, ...]


class World:
    """A run with its supervisor, for as long as a test goes on.

    `alive`: whether there is a supervisor. `dying`: after how many actions it dies in its next decision; -1: before the
    decision is written. `away`: seconds without a supervisor so far. `inbox`: submissions that wait; `handed`: all that
    were ever made. `happened`: the results of worker threads for the next turn; `heard_of`: all events that were
    decided on. `blind`: the supervisor does not see inbox and requests; `mute`: agents that print nothing; `broken`:
    every grade crashes; `spoilt`: the next intake, preparation or start fails, 2: by our fault. `staged`: the event of
    a changed task that the next resume takes in.
    """

    def __init__(self, rules: Rules, tick: float = 0.0) -> None:
        """`tick`: the seconds after which the supervisor decides without an event, between its deadlines; 0 is
        never."""
        self.rules = rules
        self.names = NAMES
        self.tick = tick
        self.fleet = Fleet()
        self.clock = 0.0
        self.wall = 1_000_000
        self.log: list[Turn] = []
        self.lines: list[bytes] = []
        self.alive = True
        self.away = 0.0
        self.dying: int | None = None
        self.processes: dict[str, Process] = {}
        self.inbox: dict[str, Submission] = {}
        self.handed: dict[str, Submission] = {}
        self.records: dict[int, Attempt] = {}
        self.requests: dict[str, on.Requested] = {}
        self.answers: list[do.Answer] = []
        self.notified: list[str] = []
        self.happened: list[on.Event] = []
        self.heard_of: list[on.Event] = []
        self.blind = False
        self.mute: set[str] = set()
        self.broken = False
        self.spoilt = 0
        self.given = 0
        self.finished: RunEnd | None = None
        self.staged: on.TaskChanged | None = None
        self.look(self._opening())

    # The supervisor.

    def look(self, *first: on.Event) -> None:
        """Do what the loop does when it wakes up: gather and decide, again while there are new events."""
        if not self.alive or self.finished:
            return
        self._decide([*first, *self._gather()])
        while self.alive and not self.finished and (news := self._news()):
            self._decide(news)

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass; the supervisor wakes up at each of its deadlines."""
        end = self.clock + seconds
        while self.alive and not self.finished:
            due = next_deadline(self.fleet, self.clock, self.rules)
            self._tick_until(min(end, due) if due is not None else end)
            if due is None or due > end:
                break
            self.clock = due
            self.look()
        if self.alive and not self.finished:
            self.clock = end

    def _tick_until(self, end: float) -> None:
        while self.tick and self.clock + self.tick < end:
            self.clock += self.tick
            self._decide([])

    def die(self, performed: int) -> None:
        """Let the supervisor die in its next decision: after so many actions, or before the decision is written
        (-1)."""
        self.dying = performed
        self.look()
        self.dying, self.alive, self.happened = None, False, []

    def resume(self) -> None:
        """Let another supervisor take the run over by the journal, if there is none. Requests that were to end the one
        before are withdrawn."""
        if self.alive and not self.finished:
            return
        ending = (on.Stop, on.Leave)
        self.requests = {
            id: request for id, request in self.requests.items() if not isinstance(request.request, ending)
        }
        memory = self.recall()
        assert memory.fleet == (self.log[-1].after if self.log else Fleet())
        self.fleet, self.clock, self.alive, self.finished = memory.fleet, memory.clock, True, None
        for process in self.processes.values():
            process.unread = process.printed  # output is read again from its beginning
        if not self.fleet.run.opened:
            self.look(self._opening())
        else:
            staged = [] if self.staged is None else [self.staged]
            self.look(on.Resumed(away=self.away), *staged, *self._reconcile())
            if self.alive:
                self.staged = None
        self.away = 0.0

    def stage_task(self, score: float) -> None:
        """Change the task; the next resume takes that in. `score`: of the seed, under the new task."""
        self.staged = on.TaskChanged(baseline=replace(attempt_zero(score), epoch=self.recall().fleet.run.epoch + 1))

    def _opening(self) -> on.Opened:
        return on.Opened(run="run", agents=self.names, baseline=attempt_zero(1.0))

    def _decide(self, events: list[on.Event]) -> None:
        now = on.Moment(run_time=self.clock, wall_time=f"wall {self.wall}")
        before, (after, actions) = self.fleet, decide(self.fleet, events, now, self.rules)
        assert_quiet_until_its_deadline(after, self.clock, self.rules)
        if not actions and is_untouched(before, after):
            return
        if self.dying == -1:
            self.tear(now, events, actions, after)
            self.alive = False
            return
        self.write(now, events, actions, after)
        self.log.append(Turn(self.clock, tuple(events), before, after, actions))
        self.fleet = after
        self.heard_of += events
        for action in actions if self.dying is None else actions[: self.dying]:
            self._perform(action)
        if self.dying is None or self.dying > len(actions):
            self.open_gates(actions)
        self.alive = self.dying is None
        self.finished = self.fleet.run.finished if self.alive else None
        if self.fleet.run.detached_reason:
            self.alive, self.happened = False, []  # what its threads did is not heard of

    # The journal.

    def write(self, now: on.Moment, events: list[on.Event], actions: tuple[do.Action, ...], after: Fleet) -> None:
        plain = {"at": now.run_time, "wall": now.wall_time, "events": encode(tuple(events)), "actions": encode(actions)}
        line = {**plain, "set": difference(self.fleet, after)}
        self.lines.append(json.dumps(line, allow_nan=False).encode() + b"\n")

    def tear(self, now: on.Moment, events: list[on.Event], actions: tuple[do.Action, ...], after: Fleet) -> None:
        """Write the first half of a line, as a supervisor does that dies meanwhile."""
        self.write(now, events, actions, after)
        self.lines[-1] = self.lines[-1][: len(self.lines[-1]) // 2]

    def recall(self) -> RecoveredState:
        self.lines = [line for line in self.lines if line.endswith(b"\n")]
        return fold_lines(map(json.loads, self.lines))

    def _reconcile(self) -> Iterator[on.Event]:
        """Yield the ends of the launches that a new supervisor does not find running, each after its last output."""
        for agent in self.fleet.agents.values():
            may_live = agent.phase in LIVE or agent.kills >= MAX_KILLS
            if may_live and not self.is_alive(agent.name, agent.launch):
                process = self.processes.pop(agent.name, None)
                if process is not None and process.printed:
                    yield self._heard(process)
                yield on.Exited(agent=agent.name, launch=agent.launch, ending=Ending.LOST)
        for number, pending in self.fleet.pending.items():
            if pending.step in OCCUPYING and not self.is_alive(pending.who, pending.launch):
                process = self.processes.pop(pending.who, None)
                if process is not None and process.ending is Ending.CLEAN:
                    yield self._graded(process)  # its result was there
                else:
                    yield on.Graded(number=number, launch=pending.launch, outcome=Outcome.LOST)
        for number, job in self.fleet.jobs.items():
            if job.phase is not Phase.WAITING and not self.is_alive(job.who, JOB_LAUNCH):
                if self.processes.pop(job.who, None) is not None:
                    yield on.JobEnded(number=number)
                else:
                    yield on.SpawnFailed(who=job.who, launch=JOB_LAUNCH, reason="nobody let it go")

    def is_alive(self, who: str, launch: int) -> bool:
        process = self.processes.get(who)
        return process is not None and process.launch == launch and not process.is_gone

    # Gathering.

    def _news(self) -> list[on.Event]:
        """Return the events that wake the loop: results of worker threads, ends of processes."""
        happened, self.happened = self.happened, []
        return happened + list(self._ends())

    def _gather(self) -> list[on.Event]:
        happened, self.happened = self.happened, []
        posted: list[on.Event] = []
        if not self.blind:
            posted += [on.Submitted(submission=self.inbox[id]) for id in sorted(self.inbox)]
            posted += list(self.requests.values())
        return happened + posted + list(self._words()) + list(self._ends())

    def _words(self) -> Iterator[on.Event]:
        for process in self.processes.values():
            if process.who.startswith(("#", "%")):
                continue
            if not process.printed and process.who not in self.mute:
                process.printed = process.unread = True
            if process.unread:
                yield self._heard(process)
                yield used(process)

    def _heard(self, process: Process) -> on.OutputSeen:
        process.unread = False
        return heard(process)

    def _ends(self) -> Iterator[on.Event]:
        for who, process in list(self.processes.items()):
            if process.ending is None:
                continue
            if process.leftovers:
                if process.lingered_at != self.clock:
                    process.lingered_at = self.clock
                    yield on.LeftProcesses(who=who, launch=process.launch)
                continue
            del self.processes[who]
            if who.startswith("%"):
                yield on.JobEnded(number=int(who[1:]), code=0 if process.ending is Ending.CLEAN else -2)
            elif who.startswith("#"):
                yield self._graded(process)
            else:
                if process.unread:
                    yield self._heard(process)
                until = 40.0 if process.ending is Ending.LIMIT else None
                yield on.Exited(agent=who, launch=process.launch, ending=process.ending, until=until)

    def _graded(self, process: Process) -> on.Graded:
        return graded(process, self.fleet.pending.get(int(process.who[1:])), self.broken)

    # Performing.

    def _perform(self, action: do.Action) -> None:  # noqa: C901 - one arm per action
        match action:
            case do.TakeIn(number=number):
                self.happened.append(self._taken(number))
            case do.Accept(submission=id) | do.Refuse(submission=id) | do.Discard(submission=id):
                self.inbox.pop(id, None)
            case do.CheckOut(number=number, launch=launch):
                self.happened.append(on.CheckedOut(number=number, launch=launch))
            case do.Publish(attempt=attempt, inline=inline):
                assert self.records.setdefault(attempt.number, attempt) == attempt
                self.happened.append(on.Published(number=attempt.number))
                if attempt.agent in self.processes:
                    self.processes[attempt.agent].printed_inline += [message.id for message in inline]
            case do.Interrupt(who=who, launch=launch):
                self.signal(who, launch, OBEDIENT)
            case do.Terminate(who=who, launch=launch):
                self.signal(who, launch, NEEDS_TERM)
            case do.Kill(who=who, launch=launch):
                self.signal(who, launch, NEEDS_KILL)
            case do.ScanEdits(agent=agent, launch=launch):
                edited = self.processes[agent].silently if agent in self.processes else None
                ago = None if edited is None else self.clock - edited
                self.happened.append(on.EditsScanned(agent=agent, launch=launch, edited=ago))
            case do.PrepareAgent():
                self.happened.append(self._prepared(action))
            case do.Notify(id=id):
                self.notified.append(id)
                self.happened.append(on.Notified(id=id))
            case do.Answer():
                self.answers.append(action)
                self.requests.pop(action.id, None)
            case _:
                pass

    def open_gates(self, actions: Iterable[do.Action]) -> None:
        """Let the processes run that these actions started, because their identities are in the journal now."""
        for action in actions:
            match action:
                case do.Spawn(agent=who, launch=launch):
                    pass
                case do.StartGrader(number=number, launch=launch):
                    who = f"#{number}"
                case do.StartJob(job=job):
                    who, launch = job.who, JOB_LAUNCH
                case _:
                    continue
            spoilt, self.spoilt = self.spoilt, 0
            if who.startswith("#") and who in self.processes and self.processes[who].deaf == UNKILLABLE:
                del self.processes[who]  # given up, by name, when the run before this one stopped
            assert who not in self.processes, f"{who} runs already"
            if spoilt:
                self.happened.append(on.SpawnFailed(who=who, launch=launch, reason="no such program"))
            else:
                self.processes[who] = Process(who, launch)

    def _taken(self, number: int) -> on.Event:
        spoilt, self.spoilt = self.spoilt, 0
        if spoilt:
            return on.IntakeFailed(number=number, reason="cannot be taken in", our_fault=spoilt == 2)
        submission = self.fleet.pending[number].submission
        tune = submission.kind is Kind.TUNE
        equal = (
            attempt
            for attempt in self.records.values()
            if attempt.tree == submission.tree and attempt.score is not None and attempt.epoch == self.fleet.run.epoch
        )
        duplicate = next((record for record in equal if (record.kind is Kind.TUNE) == tune), None)
        return on.TakenIn(
            number=number,
            commit=submission.commit,
            tree=submission.tree,
            parent="",
            duplicate=None if duplicate is None else Scored(duplicate.number, duplicate.score or 0.0),
        )

    def _prepared(self, action: do.PrepareAgent) -> on.Event:
        """Return the end of a preparation. The runtime `other` uses the account `other`, every other one that of the
        rules."""
        spoilt, self.spoilt = self.spoilt, 0
        if spoilt:
            return on.AgentNotPrepared(agent=action.agent, reason="no such program")
        of_rules = self.rules.accounts.get(action.agent, "")
        was = self.fleet.run.members.get(action.agent, Member(runtime="first", account=of_rules))
        base, wanted = action.base or was, action.wanted
        runtime = wanted.runtime or base.runtime
        member = Member(
            runtime=runtime,
            model=base.model if wanted.model is None else wanted.model,
            role=base.role if wanted.role is None else wanted.role,
            account="other" if runtime == "other" else of_rules,
        )
        return on.AgentPrepared(
            agent=action.agent, member=member, was=None if action.is_new else replace(was, added=False, former=())
        )

    def signal(self, who: str, launch: int, strength: int) -> None:
        process = self.processes.get(who)
        if process is None:
            return
        assert process.launch == launch, f"a signal for {who}/{launch} meets {process.launch}"
        if strength > OBEDIENT and process.deaf <= strength:
            process.leftovers = False
        if process.deaf <= strength and process.ending is None:
            process.ending = Ending.INTERRUPTED
