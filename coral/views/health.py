"""The health of a run, for people and programs: the level, for how long, and each reason with its text."""

from collections.abc import Mapping
from typing import Any

from coral.fleet.health import ALERTS, HealthLevel, Trouble, health_of, level_of
from coral.fleet.run_state import Fleet
from coral.views.format import duration

SUPERVISOR_TTL = 180.0  # seconds of its silence; it writes status.json far more often, even if nothing happens

MOMENTS = frozenset({Trouble.SLEPT, Trouble.CLOCK_SET})  # they were over when they were noticed

TEXTS: Mapping[Trouble, str] = {
    **ALERTS,
    Trouble.DISK: "nothing can be written to the disk",
    Trouble.CLUSTER: "the cluster cannot be used: no grade begins",
    Trouble.LOAD: "many programs share each core: grades and answers take longer",
    Trouble.NOT_WATCHED: "folders cannot be watched: what agents hand in is found some seconds later",
    Trouble.SLEPT: "the machine was suspended, or the supervisor stopped: that time does not count",
    Trouble.CLOCK_SET: "the time of day was set: no deadline has moved",
    Trouble.NOBODY_WORKS: "no agent is at work: all are parked",
    Trouble.QUEUE_PAUSED: "void attempts in a row have paused the queue: the grader may be broken",
    Trouble.GRADING_HELD: "grading is held: coral grading release",
    Trouble.ONE_FAILURE: "one reason fails most attempts",
    Trouble.AT_LIMIT: "account {of} is at its usage limit",
    Trouble.ACCOUNT_CLOSED: "account {of} has no usage any more",
    Trouble.STARTS_PAUSED: "many crashes have paused the starts of {of}",
    Trouble.AGENT_STALLED: "{of} makes no progress",
    Trouble.AGENT_FAILING: "the launches of {of} fail, one after the other",
    Trouble.AGENT_OUTAGE: "{of} does nothing but retry its model",
    Trouble.AGENT_GIVEN_UP: "{of} was given up",
    Trouble.CHECKPOINTS_UNANSWERED: "{of} leaves its checkpoints unanswered",
    Trouble.SUPERVISOR_GONE: "nobody supervises the run: coral resume",
    Trouble.STATUS_OLD: "the supervisor is there and has not said how the run is for long: it hangs or is suspended",
    Trouble.NOT_RUNNING: "the run is not running",
    Trouble.NOT_MADE: "it was never made to its end: unless its `coral start` is still at it, remove its folder",
}


def health_data(fleet: Fleet, clock: float) -> dict[str, Any]:
    """Return the health as status.json holds it. `clock`: the run's clock now; seconds are counted up to it."""
    level, found = health_of(fleet)
    reasons = [reason_of(trouble.trouble, trouble.of, clock - trouble.since) for trouble in found]
    return summed(level, reasons)


def reason_of(trouble: Trouble, of: str = "", seconds: float | None = None) -> dict[str, Any]:
    text = TEXTS[trouble].format(of=of or "agents without an account")
    return {"kind": trouble.value, "of": of, "seconds": seconds and round(seconds, 1), "text": text}


def when_text(reason: Mapping[str, Any]) -> str:
    """Return for how long a reason has held, ` (for 12 min)`, or how long ago it happened, ` (12 min ago)`; empty if
    that is not known."""
    if reason["seconds"] is None:
        return ""
    length = duration(reason["seconds"])
    return f" ({length} ago)" if reason["kind"] in MOMENTS else f" (for {length})"


def summed(level: HealthLevel, reasons: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the level, the reasons, and for how many seconds the longest of the reasons has lasted."""
    known = [reason["seconds"] for reason in reasons if reason["seconds"] is not None]
    return {"level": level.value, "seconds": max(known, default=None), "reasons": reasons}


def supervisor_gone(seconds: float | None) -> dict[str, Any]:
    """Return the health of a run whose supervisor is gone. `seconds`: since its last sign of life; None if that is not
    known."""
    return _alone(Trouble.SUPERVISOR_GONE, seconds)


def not_running(seconds: float | None) -> dict[str, Any]:
    return _alone(Trouble.NOT_RUNNING, seconds)


def not_made() -> dict[str, Any]:
    """Return the health of a run whose `coral start` has not finished making it: it still works, or was killed."""
    return _alone(Trouble.NOT_MADE, None)


def status_old(seconds: float | None) -> dict[str, Any]:
    return _alone(Trouble.STATUS_OLD, seconds)


def not_known() -> dict[str, Any]:
    """Return the health "unknown", for an agent that may not read the run's status."""
    return summed(HealthLevel.UNKNOWN, [])


def _alone(trouble: Trouble, seconds: float | None) -> dict[str, Any]:
    return summed(level_of(trouble), [reason_of(trouble, seconds=seconds)])
