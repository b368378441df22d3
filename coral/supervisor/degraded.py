"""What goes on while the journal cannot be written: nothing new starts, but what must end still ends.

Decisions go on from a copy of the fleet that is not journalled, and of their actions only signals and clean-ups are
performed. The events that count are kept until the journal can be written again, and no others: it may take days.
"""

from collections.abc import Hashable, Iterable

from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from heartbeats.reply import OtherReply, parse_reply
from workspace.disk import is_disk_problem

SIGNAL_PREFIX = "signal-"  # of the id of a request that came as a signal, and not as a file


class Degraded:
    """Keeps what the journal lacks. `unwritten`: its events; `unrecorded_fleet`: the fleet after them, None while the
    journal can be written."""

    def __init__(self) -> None:
        self.unwritten: list[on.Event] = []
        self.unrecorded_fleet: Fleet | None = None

    def end(self) -> None:
        """Forget the events, because they are in the journal now."""
        self.unwritten, self.unrecorded_fleet = [], None

    def decide(
        self, fleet: Fleet, events: list[on.Event], now: on.Moment, rules: Rules, error: OSError
    ) -> list[do.Action]:
        """Return the actions that are performed although they are not journalled. `error`: why the journal cannot be
        written.

        If the disk is why, the fleet is told so first: else what a grade wrote is not removed. No other sign of it may
        come, for at a quota the disk seems to have space.
        """
        if is_disk_problem(error) and not (self.unrecorded_fleet or fleet).run.disk_problem:
            events = [on.DiskChecked(problem=reason_of(error)), *events]
        # Submissions and requests are not kept: their files are read again.
        self.unwritten = without_superseded(
            [*self.unwritten, *(event for event in events if not _lies_in_a_folder(event))]
        )
        seen = [_without_grader(event) for event in events]
        self.unrecorded_fleet, actions = decide(self.unrecorded_fleet or fleet, seen, now, rules)
        ending = do.Interrupt | do.Terminate | do.Kill | do.CleanUpGrade
        return [action for action in actions if isinstance(action, ending)]


def reason_of(error: OSError) -> str:
    return f"the journal cannot be written: {error}"


def without_superseded(events: Iterable[on.Event]) -> list[on.Event]:
    """Return the events in their order, without those that a later one makes superfluous."""
    found = list(events)
    last = {key: place for place, event in enumerate(found) if (key := _subject(event)) is not None}
    return [event for place, event in enumerate(found) if (key := _subject(event)) is None or last[key] == place]


def _subject(event: on.Event) -> Hashable:
    """Return the subject of an event of which only the newest figure or text counts; None where every event counts."""
    match event:
        case on.HeartbeatsAltered() | on.RecordsDamaged() | on.Restored() | on.LeftProcesses() | on.LifeSeen():
            return event  # each check finds the same again, since nothing is done about it yet
        case on.OutputSeen(agent=agent, launch=launch, reply=reply) if isinstance(parse_reply(reply), OtherReply):
            return ("output", agent, launch, "")
        case on.Used(agent=agent, launch=launch, session=session):
            return ("used", agent, launch, session)
        case _:
            return None


def _without_grader(event: on.Event) -> on.Event:
    """Return a lost grade for a commit that was checked out: without the journal its grader cannot start."""
    match event:
        case on.CheckedOut(number=number, launch=launch):
            return on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
    return event


def _lies_in_a_folder(event: on.Event) -> bool:
    requested = isinstance(event, on.Requested) and not event.id.startswith(SIGNAL_PREFIX)
    return requested or isinstance(event, on.Submitted | on.RequestUnreadable)
