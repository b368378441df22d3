"""What the performer and its worker threads leave for the next turn to gather: events, and why the disk cannot be used.

What the failure of an action means is said here, as an event; what follows from it, the decisions say.
"""

from collections import deque
from collections.abc import Callable

from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.jobs import LAUNCH
from coral.fleet.process_key import of_grade
from workspace.disk import is_disk_problem
from workspace.errors import Unacceptable


class EventQueue:
    """Worker threads and signal handlers put events here, too."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` ends the loop's sleep."""
        self._events: deque[on.Event] = deque()  # one by one, a deque is taken from and added to without a lock
        self._disk_error = ""
        self._wake = wake

    def put(self, *events: on.Event) -> None:
        if events:
            self._events.extend(events)
            self._wake()

    def put_failure(self, action: do.Action, error: BaseException) -> list[on.Event]:
        """Put the events that the failure of an action means; returns them."""
        if is_disk_problem(error):
            self.put_disk_error(str(error))
        events = events_of_failure(action, error)
        self.put(*events)
        return events

    def put_disk_error(self, text: str) -> None:
        """The last reason why something could not be written, for the check of the disk."""
        self._disk_error = text

    def take(self) -> list[on.Event]:
        return [self._events.popleft() for _ in range(len(self._events))]

    def take_disk_error(self) -> str:
        text, self._disk_error = self._disk_error, ""
        return text

    @property
    def is_empty(self) -> bool:
        return not self._events


def events_of_failure(action: do.Action, error: BaseException) -> list[on.Event]:
    reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    match action:
        case do.TakeIn(number=number):
            our_fault = not isinstance(error, Unacceptable)
            return [on.IntakeFailed(number=number, reason=reason if our_fault else str(error), our_fault=our_fault)]
        case do.Grade(number=number, launch=launch) if isinstance(error, Unacceptable):
            return [on.Graded(number=number, launch=launch, outcome=on.Outcome.FAILED, reason=str(error))]
        case do.Grade(number=number, launch=launch) | do.StartGrader(number=number, launch=launch):
            return [on.SpawnFailed(who=of_grade(number), launch=launch, reason=reason)]
        case do.Spawn(agent=agent, launch=launch):
            return [on.SpawnFailed(who=agent, launch=launch, reason=reason)]
        case do.StartJob(job=job):
            return [on.SpawnFailed(who=job.who, launch=LAUNCH, reason=reason)]
        case do.ScanEdits(agent=agent, launch=launch):
            broken = on.Broken(item=f"the scan of the files of {agent}", reason=reason)
            return [on.EditsScanned(agent=agent, launch=launch), broken]
        case do.Publish(attempt=attempt):
            return _failed_write(f"the record of #{attempt.number}", reason)
        case do.ShowJob(job=job):
            return _failed_write(f"the record of job {job.number}", reason)
        case do.Notify(id=id):
            return [on.WriteFailed(item=f"alert {id}")]  # to alert the operator of that would fail as well
        case _:
            return [on.Broken(item=f"the action {type(action).__name__}", reason=reason)]


def _failed_write(item: str, reason: str) -> list[on.Event]:
    return [on.Broken(item=item, reason=reason), on.WriteFailed(item=item)]
