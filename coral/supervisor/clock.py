"""The run's clock: seconds since the run first started, standing still while nobody supervises.

It follows the machine's monotonic clock: no deadline moves when somebody sets the time. Wall time is for people. What
the supervisor overslept, stopped by a signal or with the machine, is no time that passed: nobody was listening.
"""

import time
from datetime import UTC, datetime

from coral.fleet.events import Moment

LONGEST = 2.0  # seconds of work between two looks at the clock, at most, that count


class Clock:
    def __init__(self, elapsed: float) -> None:
        """`elapsed`: what the clock showed when the run was last supervised, in seconds."""
        self._elapsed = elapsed
        self._looked_at = time.monotonic()
        self._longest = LONGEST

    def now(self) -> Moment:
        at = time.monotonic()
        self._elapsed += min(at - self._looked_at, self._longest)
        self._looked_at, self._longest = at, LONGEST
        return Moment(run_time=self._elapsed, wall_time=wall())

    def sleep(self, seconds: float) -> None:
        """So long may it be, rightly, until the next look at the clock, and what a look takes besides."""
        self._longest = max(seconds, 0.0) + LONGEST


def wall() -> str:
    """The time of day as ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def since(then: str) -> float:
    """Seconds that have passed since a time of day; 0 where it is none, or lies ahead because a clock was set."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
