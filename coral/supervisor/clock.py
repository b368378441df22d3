"""The run's clock: seconds since the run first started, without those in which nobody supervised.

It follows the machine's monotonic clock, so no deadline moves when somebody sets the time of day, which is for people
alone. Seconds for which the supervisor was stopped by a signal, or the machine was suspended, do not count: nobody read
in them what agents printed.
"""

import time
from datetime import UTC, datetime

from coral.fleet.events import Moment

LONGEST = 2.0  # most seconds of work that count between two readings of the clock


class Clock:
    def __init__(self, elapsed: float) -> None:
        """`elapsed`: what the clock showed when the run was last supervised, in seconds."""
        self._elapsed = elapsed
        self._read_at = time.monotonic()
        self._longest = LONGEST

    def now(self) -> Moment:
        at = time.monotonic()
        self._elapsed += min(at - self._read_at, self._longest)
        self._read_at, self._longest = at, LONGEST
        return Moment(run_time=self._elapsed, wall_time=wall())

    def sleep(self, seconds: float) -> None:
        """Let the next reading count up to this many seconds more."""
        self._longest = max(seconds, 0.0) + LONGEST


def wall() -> str:
    """Return the time of day as ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def since(then: str) -> float:
    """Return the seconds since a time of day in ISO 8601; 0 if the text is none, or lies in the future because a clock
    was set."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
