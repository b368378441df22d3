"""The events that the performer and its worker threads leave for the next turn to gather, and the last error of the
disk.

What the failure of an action means is said here, as an event; what follows from it is decided in `coral.fleet`. A
failure that repeats is reported once. Of one sender's malformed files the first few are reported one by one and the
others as a count, so that ten thousand of them cause no more alerts than a few.
"""

import errno
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.events import Broken
from coral.fleet.jobs import JOB_LAUNCH
from coral.fleet.process_key import of_grade
from workspace.disk import is_disk_problem
from workspace.errors import Unacceptable, WorkspaceError

MAX_REMEMBERED = 256  # failures: a reason that names a time is new each time, and the list would grow
AT_FIRST = 5  # malformed files of one sender that are reported one by one
QUIET_SECONDS = 60.0  # the others are reported as a count, once in so many seconds
MAX_TRIES = 6  # tries of an action whose error may be over a little later; then it is given up
REPORTED_AT = 3  # after so many failed tries of a write that must succeed, the operator is told
TRANSIENT = frozenset(
    {errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}
) | {errno.ETIMEDOUT}
TRANSIENT_OF_SQLITE = frozenset({5, 6, 10})  # busy, locked, an error of the disk


class SeenFailures:
    """Remembers the latest failures, so that one that repeats is reported once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = {}  # the latest comes last

    def is_new(self, item: str, reason: str) -> bool:
        """Return whether this failure has not been seen before, and remember it."""
        known = (item, reason) in self._known
        self._known.pop((item, reason), None)
        self._known[item, reason] = None
        if len(self._known) > MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        return not known


@dataclass(slots=True)
class _Sender:
    since: float
    reported: int = 0
    unreported: int = 0
    reason: str = ""


class AlertLimit:
    """Reports the first few malformed files of each sender, and then how many more there were."""

    def __init__(self) -> None:
        self._senders: dict[str, _Sender] = {}

    def report(self, sender: str, item: str, reason: str, clock: float) -> Iterator[Broken]:
        """Yield a report that an item of `sender` was set aside, or only count it. `clock`: the run's, in seconds."""
        state = self._senders.setdefault(sender, _Sender(clock))
        if clock - state.since >= QUIET_SECONDS and not state.unreported:
            state.since, state.reported = clock, 0
        if state.reported < AT_FIRST:
            state.reported += 1
            yield Broken(item=item, reason=reason)
        else:
            state.unreported, state.reason = state.unreported + 1, reason

    def overdue_summaries(self, clock: float) -> Iterator[Broken]:
        """Report for each sender how many items were only counted, once QUIET_SECONDS are over since its last
        report."""
        for sender, state in self._senders.items():
            if state.unreported and clock - state.since >= QUIET_SECONDS:
                what = "1 more thing" if state.unreported == 1 else f"{state.unreported} more things"
                yield Broken(item=f"{what} of {sender}", reason=f"the last one: {state.reason}")
                state.since, state.unreported = clock, 0


class EventQueue:
    """The queue itself. Worker threads and signal handlers may put events into it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` ends the loop's sleep."""
        self._events: deque[on.Event] = deque()  # one by one, a deque is taken from and added to without a lock
        self._disk_error = ""
        self._wake = wake

    def put(self, *events: on.Event) -> None:
        if events:
            self._events.extend(events)
            self._wake()

    def put_failure(self, action: do.Action, error: BaseException, tries: int = 1) -> list[on.Event]:
        """Put the events that follow from the failure of an action, and return them. `tries`: how many times the action
        has failed."""
        if is_disk_problem(error):
            self.put_disk_error(str(error))
        events = events_of_failure(action, error, tries)
        self.put(*events)
        return events

    def put_disk_error(self, text: str) -> None:
        """Keep the reason why something could not be written, for the next check of the disk."""
        self._disk_error = text

    def take(self) -> list[on.Event]:
        return [self._events.popleft() for _ in range(len(self._events))]

    def take_disk_error(self) -> str:
        text, self._disk_error = self._disk_error, ""
        return text

    @property
    def is_empty(self) -> bool:
        return not self._events


def is_transient(error: BaseException) -> bool:
    """Return whether the same action may succeed a little later: the error's code names a machine or disk in trouble,
    or a file in use."""
    if isinstance(error, OSError):
        return error.errno in TRANSIENT or is_disk_problem(error)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in TRANSIENT_OF_SQLITE or is_disk_problem(error)


def events_of_failure(  # noqa: C901 - one arm per action
    action: do.Action, error: BaseException, tries: int = 1
) -> list[on.Event]:
    reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    match action:
        case do.TakeIn(number=number):
            our_fault = not isinstance(error, Unacceptable)
            return [on.IntakeFailed(number=number, reason=reason if our_fault else str(error), our_fault=our_fault)]
        case do.CheckOut(number=number, launch=launch) if isinstance(error, Unacceptable):
            return [on.Graded(number=number, launch=launch, outcome=on.Outcome.FAILED, reason=str(error))]
        case do.CheckOut(number=number, launch=launch) | do.StartGrader(number=number, launch=launch):
            return [on.SpawnFailed(who=of_grade(number), launch=launch, reason=reason)]
        case do.Spawn(agent=agent, launch=launch):
            return [on.SpawnFailed(who=agent, launch=launch, reason=reason)]
        case do.PrepareAgent(agent=agent):
            expected = isinstance(error, CoralError | WorkspaceError)
            return [on.AgentNotPrepared(agent=agent, reason=str(error) if expected else reason)]
        case do.StartJob(job=job):
            return [on.SpawnFailed(who=job.who, launch=JOB_LAUNCH, reason=reason)]
        case do.ScanEdits(agent=agent, launch=launch):
            broken = on.Broken(item=f"the scan of the files of {agent}", reason=reason)
            return [on.EditsScanned(agent=agent, launch=launch), broken]
        case do.Publish(attempt=attempt):
            return _failed_write(f"the record of #{attempt.number}", reason, error, tries)
        case do.ShowJob(job=job):
            return _failed_write(f"the record of job {job.number}", reason, error, tries)
        case do.ShowHoldouts():
            return _failed_write("the scores on the hold-out", reason, error, tries)
        case do.Notify(id=id):
            return [on.WriteFailed(item=f"alert {id}", depth=tries)]  # to alert the operator of that would fail as well
        case do.Accept() | do.Refuse() | do.Discard() | do.Answer() | do.ShowHeartbeats() if (
            tries < MAX_TRIES and is_transient(error)
        ):
            return [on.WriteFailed(item=f"the action {type(action).__name__}", depth=tries)]
        case _:
            return [on.Broken(item=f"the action {type(action).__name__}", reason=reason)]


def _failed_write(item: str, reason: str, error: BaseException, tries: int) -> list[on.Event]:
    """Return the events of a failed write that must succeed in the end: it is tried again as long as the run goes on.
    An error that may be over a moment later is reported only after REPORTED_AT tries."""
    failed = on.WriteFailed(item=item, depth=tries)
    is_reported = tries >= REPORTED_AT or is_disk_problem(error) or not is_transient(error)
    return [on.Broken(item=item, reason=reason), failed] if is_reported else [failed]
