"""The run's clock: seconds since the run first started, standing still while nobody supervises.

It follows the machine's monotonic clock: no deadline moves when somebody sets the time. Wall time is for people.
"""

import time
from datetime import UTC, datetime

from coral.fleet.events import Moment


class Clock:
    def __init__(self, elapsed: float) -> None:
        """`elapsed`: what the clock showed when the run was last supervised, in seconds."""
        self._start = time.monotonic() - elapsed

    def now(self) -> Moment:
        return Moment(clock=time.monotonic() - self._start, wall=wall())


def wall() -> str:
    """The time of day as ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def since(then: str) -> float:
    """Seconds that have passed since a time of day; 0 where it is none, or lies ahead because a clock was set."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
