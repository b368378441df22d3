"""A disk that nothing can be written to: what is under way goes on, nothing new is begun, nobody is blamed.

Whatever fails meanwhile counts as lost, and is done once more when the disk can be used again.
"""

from dataclasses import replace

from coral.fleet import events as on
from coral.fleet import stalls
from coral.fleet.draft import Draft
from coral.fleet.who import grade_in, job_in

_UNPROVEN = (on.Outcome.FAILED, on.Outcome.CRASHED)


def on_space(draft: Draft, lack: str) -> None:
    before = draft.run.lack
    if not lack:
        forgive(draft)
    draft.set_run(lack=lack)
    if lack and not before:
        draft.set_run(lack_at=draft.clock)
        draft.alert(f"nothing new is begun, until the disk can be used again: {lack}")
    elif before and not lack:
        draft.alert("the disk can be used again; the run goes on")


def forgive(draft: Draft) -> None:
    """The time in which nothing could be written is over, or somebody else looks after it."""
    if draft.run.lack:
        for name in draft.agents:
            stalls.excuse(draft, name)


def excused(event: on.Event, lack: str) -> on.Event:
    """What counts instead of this event while something is lacking."""
    if not lack:
        return event
    match event:
        case on.SpawnFailed(who=who, launch=launch) if (number := grade_in(who)) is not None:
            return on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
        case on.SpawnFailed(who=who, launch=launch) if job_in(who) is None:
            return on.Exited(agent=who, launch=launch, ending=on.Ending.LOST)
        case on.Graded(outcome=outcome) if outcome in _UNPROVEN:
            return replace(event, outcome=on.Outcome.LOST)
        case on.Exited(ending=on.Ending.CRASHED):
            return replace(event, ending=on.Ending.LOST)
    return event
