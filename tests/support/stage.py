"""Transcripts of decisions: a test gives events and their time to a `Stage`, and gets the actions as lines of text.

No action is performed, so nothing happens but what the test says. A line has every field of an action. `Stage.at` fails
if an action was due before its time, so that no transcript leaves one out.
"""

import math
from collections.abc import Iterable
from dataclasses import fields, replace
from enum import StrEnum
from typing import assert_never

from attempts.record import OPEN, Attempt, Kind, Submission, Verdict
from attempts.standing import Scored
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Agent, JobEnd, OutputCounts, PendingMessage
from coral.fleet.decide import decide, next_deadline
from coral.fleet.members import WantedMember
from coral.fleet.reasons import Reason, RunEnd, RunEndKind
from coral.fleet.rules import Rules
from coral.fleet.run_state import Breaker, Fleet, PendingAttempt
from heartbeats.heartbeat import Delivery, Heartbeat
from heartbeats.trigger import Elapsed, Every

NAMES = ("ann", "ben", "cid", "dot")
SEED = "5eed" * 10
NOTHING = OutputCounts()
REFLECT = Heartbeat(name="reflect", trigger=Every(1), protected=True)
CHECKPOINT = Heartbeat(name="checkpoint", trigger=Elapsed(1800))
TIP = Heartbeat(name="tip", trigger=Every(1), delivery=Delivery.INLINE, prompt="mind the gap")
QUIET_RULES = Rules(seed_commit=SEED, slots=4, heartbeats=(), stagger=0.0)
REFLECTING = replace(QUIET_RULES, heartbeats=(REFLECT,))


def rules_with(*heartbeats: Heartbeat) -> Rules:
    return replace(QUIET_RULES, heartbeats=heartbeats, slots=20)


class Stage:
    """A fleet of up to four agents. Each has started and printed its first output, unless `started` is False."""

    def __init__(
        self, agents: int = 1, rules: Rules = QUIET_RULES, *, started: bool = True, baseline: float | None = 0.0
    ):
        self.rules = rules
        self.names = NAMES[:agents]
        self.fleet = Fleet()
        self.clock = 0.0
        self.actions: tuple[do.Action, ...] = ()
        self._ids = 0
        self._answers = 0
        self._place = 0
        self.opening = self.at(0, on.Opened(run="run", agents=self.names, baseline=attempt_zero(baseline)))
        if started:
            self.until(1)
            for name in self.names:
                self.at(1, self.heard(name))

    # Time.

    def at(self, clock: float, *events: on.Event) -> list[str]:
        """Decide on all these events at once, at this time; returns the actions. AssertionError if one was due
        before."""
        missed = self.until(clock, including=False)
        assert not missed, f"before {clock:g} there was more to say: {missed}"
        return self._decide(clock, events)

    def until(self, clock: float, *, including: bool = True) -> list[str]:
        """Decide at each deadline up to this time; returns the actions, each behind its time."""
        said = []
        while (due := next_deadline(self.fleet, self.clock, self.rules)) is not None and due <= clock:
            if due == clock and not including:
                break
            said += [f"{due:g} {line}" for line in self._decide(due, ())]
        self.clock = clock
        return said

    def _decide(self, clock: float, events: Iterable[on.Event]) -> list[str]:
        self.clock = clock
        now = on.Moment(run_time=clock, wall_time=f"wall {clock:g}")
        self.fleet, self.actions = decide(self.fleet, events, now, self.rules)
        assert_quiet_until_its_deadline(self.fleet, clock, self.rules)
        return [line_of(action) for action in self.actions]

    # Events and requests of an agent or the operator.

    def submission(self, agent: str, wait: float = 0.0, kind: Kind = Kind.REAL) -> on.Submitted:
        self._ids += 1
        return submitted(agent, self._ids, wait=wait, kind=kind)

    def heard(
        self,
        agent: str,
        session: str | None = "",
        busy: str = "",
        reply: str = "",
        count: OutputCounts = NOTHING,
        has_prompt: bool = True,
    ) -> on.OutputSeen:
        session = f"session of {agent}" if session == "" else session
        self._place += bool(reply)
        place = self._place if reply else 0
        launch = self[agent].launch
        return on.OutputSeen(
            agent=agent,
            launch=launch,
            session=session,
            has_prompt=has_prompt,
            activity=busy,
            reply=reply,
            place=place,
            count=count,
        )

    def looked(self, agent: str, edited: float | None = None) -> on.EditsScanned:
        return on.EditsScanned(agent=agent, launch=self[agent].launch, edited=edited)

    def exited(
        self, agent: str, ending: on.Ending = on.Ending.CLEAN, detail: str = "", until: float | None = None
    ) -> on.Exited:
        return on.Exited(agent=agent, launch=self[agent].launch, ending=ending, detail=detail, until=until)

    def lingered(self, who: str) -> on.LeftProcesses:
        launch = self.pending(int(who[1:])).launch if who.startswith("#") else self[who].launch
        return on.LeftProcesses(who=who, launch=launch)

    def not_started(self, who: str, reason: str = "no such program") -> on.SpawnFailed:
        launch = self.pending(int(who[1:])).launch if who.startswith("#") else self[who].launch
        return on.SpawnFailed(who=who, launch=launch, reason=reason)

    def asks(self, sender: str, request: on.Request) -> on.Requested:
        self._answers += 1
        return on.Requested(sender=sender, id=str(self._answers), request=request)

    def ask(self, sender: str, request: on.Request, clock: float = 2) -> list[str]:
        """Return the actions after a request; the answer is without the request's number."""
        said = self.at(clock, self.asks(sender, request))
        return [line.replace(f"/{self._answers}:", ":") for line in said]

    def stop(self, clock: float, reason: str = "enough") -> list[str]:
        """Return the actions after the operator's request to stop."""
        return self.at(clock, self.asks("operator", on.Stop(end=on_request(reason))))

    # Events of an attempt.

    def checked_out(self, number: int) -> on.CheckedOut:
        return on.CheckedOut(number=number, launch=self.pending(number).launch)

    def taken(
        self, number: int, duplicate: Scored | None = None, built_on: Scored | None = None, channel: str = OPEN
    ) -> on.TakenIn:
        commit = self.pending(number).submission.commit
        return on.TakenIn(
            number=number,
            commit=commit,
            tree=tree(number),
            parent="",
            duplicate=duplicate,
            channel=channel,
            built_on=built_on,
        )

    def graded(
        self, number: int, score: float | None = None, outcome: on.Outcome | None = None, reason: str = ""
    ) -> on.Graded:
        outcome = outcome or (on.Outcome.SCORED if score is not None else on.Outcome.FAILED)
        launch = self.pending(number).launch
        return on.Graded(number=number, launch=launch, outcome=outcome, score=score, reason=reason, seconds=2.0)

    def in_grading(self, clock: float, *agents: str, wait: float = 0.0, kind: Kind = Kind.REAL) -> list[int]:
        """Let each of these agents submit, and take the commits in; returns the numbers of the attempts."""
        first = self.fleet.run.next_number
        numbers = list(range(first, first + len(agents)))
        self.at(clock, *[self.submission(agent, wait, kind) for agent in agents])
        self.at(clock, *[self.taken(number) for number in numbers])
        return numbers

    def tried(self, clock: float, agent: str, score: float | None, *, wait: float = 0.0) -> list[str]:
        """Make a whole attempt at one time; returns the actions after its grade."""
        (number,) = self.in_grading(clock, agent, wait=wait)
        said = self.at(clock, self.graded(number, score, reason="" if score is not None else "wrong"))
        self.at(clock, on.Published(number=number))
        return said

    def voided(self, clock: float, number: int) -> list[str]:
        """Let the grader of an attempt crash, and that of the seed in its place too; returns the actions after that."""
        self.at(clock, self.graded(number, outcome=on.Outcome.CRASHED, reason="no disk"))
        return self.at(clock, self.graded(number, outcome=on.Outcome.CRASHED, reason="no disk"))

    def resumed(self, agent: str, clock: float) -> list[str]:
        """End the agent's launch after an interrupt, and let the next one print; returns the actions after both."""
        said = self.at(clock, self.exited(agent, on.Ending.INTERRUPTED))
        return said + self.at(clock, self.heard(agent))

    # The state.

    def __getitem__(self, agent: str) -> Agent:
        return self.fleet.agents[agent]

    def deadline(self, agent: str) -> float:
        due = self[agent].deadline
        assert due is not None
        return due

    def retry_at(self) -> float:
        """Return when a probe starts at the account `acme`, which is at its limit."""
        due = self.fleet.run.limits["acme"].until
        assert due is not None
        return due

    @property
    def breaker(self) -> Breaker:
        """The breaker of the agents that have no account."""
        return self.fleet.run.breakers.get("", Breaker())

    def pending(self, number: int) -> PendingAttempt:
        return self.fleet.pending[number]

    def published(self) -> Attempt:
        """Return the record that the last decision published."""
        (attempt,) = [action.attempt for action in self.actions if isinstance(action, do.Publish)]
        return attempt

    def in_force(self, owner: str) -> dict[str, str]:
        return {heartbeat.name: heartbeat.when for heartbeat in self.fleet.heartbeats[owner]}

    def owed(self, agent: str) -> list[str]:
        return [f"{message.name} {message.id}" for message in self[agent].pending_messages]


def assert_quiet_until_its_deadline(fleet: Fleet, clock: float, rules: Rules) -> None:
    """Assert that `decide` without an event does nothing and changes nothing before the next deadline."""
    due = next_deadline(fleet, clock, rules)
    assert due is None or due > clock
    last = clock + 1e6 if due is None else math.nextafter(due, -math.inf)
    for time in (clock, (clock + last) / 2, last):
        after, actions = decide(fleet, (), on.Moment(run_time=time, wall_time=""), rules)
        assert actions == (), f"at {time!r}, before {due!r}: {actions}"
        assert after == fleet
        assert is_untouched(fleet, after), f"at {time!r}, before {due!r}: a record was made anew"


def is_untouched(before: Fleet, after: Fleet) -> bool:
    """Return whether no record was replaced, so that the journal gets no line."""
    names = ("agents", "pending", "heartbeats", "jobs", "measured", "holdouts")
    parts = [(getattr(before, name), getattr(after, name)) for name in names]
    same = all(old.keys() == new.keys() and all(old[key] is new[key] for key in old) for old, new in parts)
    return same and before.run is after.run


def attempt_zero(score: float | None = 0.0) -> Attempt:
    return Attempt(
        number=0,
        agent="",
        kind=Kind.BASELINE,
        commit=SEED,
        tree=tree(0),
        parent="",
        title="the seed",
        submission="",
        submitted_at="",
        published_at="",
        order=0,
        verdict=Verdict.FAILED if score is None else Verdict.NEW_BEST,
        score=score,
    )


def submitted(agent: str, number: int, *, wait: float = 0.0, kind: Kind = Kind.REAL) -> on.Submitted:
    """Return a submission with this number as its id and its commit."""
    return on.Submitted(
        submission=Submission(
            id=f"{number:020d}",
            agent=agent,
            commit=f"{number:040x}",
            tree="",
            title=f"try {number}",
            kind=kind,
            wait=wait,
            submitted_at=f"wall of {number}",
        )
    )


def setting(owner: str, **entry: str | int | float | None) -> on.SetHeartbeat:
    """Return the request to set a heartbeat."""
    return on.SetHeartbeat(owner=owner, entry=entry)


def on_request(detail: str = "") -> RunEnd:
    """Return the end of a run that somebody asked for. `detail`: why."""
    return RunEnd(RunEndKind.REQUEST, detail=detail)


def tree(number: int) -> str:
    return f"{number:040x}"[::-1]


def line_of(action: do.Action) -> str:  # noqa: C901 - one arm per action
    """Return a line with every field of an action."""
    match action:
        case do.TakeIn(number=number, agent=agent, commit=commit):
            return f"take in #{number}: commit {_commit(commit)} of {agent}"
        case do.Accept(agent=agent, submission=submission, number=number):
            return f"accept {int(submission)} of {agent} as #{number}"
        case do.Refuse(agent=agent, submission=submission, reason=reason):
            return f"refuse {int(submission)} of {agent}: {brief(reason)}"
        case do.Discard(agent=agent, submission=submission):
            return f"discard {int(submission)} of {agent}"
        case do.CheckOut(number=number, launch=launch, commit=commit, kind=kind):
            return f"grade #{number}/{launch}: commit {_commit(commit)}{_as(kind)}"
        case do.StartGrader(number=number, launch=launch, kind=kind):
            return f"start the grader of #{number}/{launch}{_as(kind)}"
        case do.CleanUpGrade(number=number, launch=launch, whole=whole):
            return f"tidy #{number}/{launch}{' whole' if whole else ''}"
        case do.Publish(attempt=attempt, heartbeats=heartbeats, inline=inline):
            names = f", then {' '.join(heartbeats)}" if heartbeats else ""
            printed = f", printing {_owed(inline)}" if inline else ""
            return f"publish {_attempt(attempt)}{names}{printed}"
        case do.Spawn():
            return _spawn(action)
        case do.PrepareAgent(agent=agent, wanted=wanted, is_new=is_new, base=base):
            based = f", based on {base.title}" if base else ""
            return f"prepare {'the new ' if is_new else ''}{agent}: {_wanted(wanted)}{based}"
        case do.SetMember(agent=agent, member=member, aside=aside):
            freed = "" if aside is None else f", aside what it had up to launch {aside}"
            return f"drive {agent} by {member.title}{freed}"
        case do.StartJob(job=job):
            folder = f" in {job.folder}" if job.folder else ""
            return f"start job {job.number} of {job.agent}: {' '.join(job.argv)}{folder}"
        case do.ShowJob(job=job, end=end, ended=ended):
            return f"show job {job.number} of {job.agent}: {_ended(end)}, after {end.seconds:g} at {ended}"
        case do.Interrupt(who=who, launch=launch):
            return f"interrupt {who}/{launch}"
        case do.Terminate(who=who, launch=launch):
            return f"terminate {who}/{launch}"
        case do.Kill(who=who, launch=launch):
            return f"kill {who}/{launch}"
        case do.ScanEdits(agent=agent, launch=launch):
            return f"look {agent}/{launch}"
        case do.ShowHeartbeats(owner=owner):
            return f"show {owner}"
        case do.ShowHoldouts(graded=graded):
            return "show the hold-out" + ("" if graded is None else f" after #{graded}")
        case do.RestoreRecords(altered=altered, misindexed=misindexed):
            return f"restore the records {altered}, and {misindexed} in the index"
        case do.WriteAgain():
            return "write again"
        case do.Answer(sender=sender, id=id, ok=ok, message=message, hint=hint):
            return f"answer {sender}/{id}: {'yes' if ok else 'no'}, {message}{f' ({hint})' if hint else ''}"
        case do.Notify(id=id, text=text, agent=agent):
            said = _joined(text, brief(action.reason))
            return f"alert {id}{f' of {agent}' if agent else ''}: {said}{' again' if action.repeat else ''}"
        case do.LogEvent():
            return _log_event(action)
        case do.Finish(end=end):
            return f"finish: {brief(end)}"
        case _:
            assert_never(action)


def _wanted(wanted: WantedMember) -> str:
    given = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
    return " ".join(f"{name}={value}" for name, value in given.items() if value is not None) or "as the others"


def _as(kind: Kind) -> str:
    return "" if kind is Kind.REAL else " as a probe" if kind is Kind.BASELINE else f" as {kind}"


def _spawn(action: do.Spawn) -> str:
    session = f", {action.session}" if action.session is not None else ""
    owed = f", owed {_owed(action.messages)}" if action.messages else ""
    return (
        f"spawn {action.agent}/{action.launch}: {brief(action.reason)}{session}, told {action.last_result_seen}{owed}"
    )


MESSAGES = ("heartbeat", "withdrawn", "skipped")  # types of lines that are about messages


def _log_event(event: do.LogEvent) -> str:
    # A line has the messages as data and in its text; the transcript shows the text, so both must name the same.
    assert bool(event.messages) == (event.type in MESSAGES)
    assert all(message.name in event.text and message.id in event.text for message in event.messages)
    launch = f"launch {event.launch}" if event.launch else ""
    ended = f"ended: {event.ending}" if event.ending is not None else ""
    said = _joined(" ".join(part for part in (launch, ended) if part), event.text, brief(event.reason))
    return f"{event.type}{f' {event.agent}' if event.agent else ''}: {said}"


def brief(reason: Reason | RunEnd | None) -> str:
    """Return the kind of a reason and, in brackets, its other fields: `stalled (silent, 2, 1200)`."""
    if reason is None:
        return ""
    budget = f"{reason.budget.limit:g} {reason.budget.key}" if reason.budget is not None else ""
    names = [field.name for field in fields(reason) if field.name not in ("kind", "budget")]
    held = [value for name in names if (value := getattr(reason, name))]
    given = [f"{value:g}" if isinstance(value, float) else str(value) for value in held]
    return _with(reason.kind, *given, budget)


def _ended(end: JobEnd) -> str:
    """Return the outcome of a job with its exit code, its error or the reason why it was ended."""
    return _with(end.outcome, str(end.code) if end.code else "", end.detail, brief(end.reason))


def _with(kind: StrEnum, *given: str) -> str:
    said = ", ".join(part for part in given if part)
    return kind.replace("_", " ") + (f" ({said})" if said else "")


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _attempt(attempt: Attempt) -> str:
    score = "" if attempt.score is None else f" {attempt.score:g}"
    reason = f" ({attempt.reason})" if attempt.reason else ""
    return f"#{attempt.number} {attempt.verdict}{score}{reason}"


def _owed(owed: tuple[PendingMessage, ...]) -> str:
    return " ".join(f"{message.name}:{message.id}" for message in owed)


def _commit(commit: str) -> str:
    return "seed" if commit == SEED else str(int(commit, 16))
