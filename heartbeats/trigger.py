"""When a heartbeat is due: every n attempts, at n, 2n, 3n ... attempts without improvement, or by the clock.

An armed heartbeat has one number, its target: the count of attempts, or the time, at which it fires. A trigger is
evaluated after every single attempt, so that it fires at each target, however many attempts are published at once.
Retiming never lengthens the current interval: an agent cannot put a heartbeat off by retiming it again and again.
"""

from dataclasses import dataclass
from typing import assert_never

from attempts.fields import shown
from attempts.progress import Progress


@dataclass(frozen=True, slots=True)
class _Count:
    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise ValueError(f"n must be a whole number from 1, got {shown(self.n)}")


@dataclass(frozen=True, slots=True)
class Every(_Count):
    """Fires after every n attempts that count."""


@dataclass(frozen=True, slots=True)
class Stagnant(_Count):
    """Fires at n, 2n, 3n ... attempts in a row without improvement; an improvement starts the count again."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Fires after so many seconds of the run's clock."""

    seconds: float

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not 0 < self.seconds < 1e15:
            raise ValueError(f"seconds must be a number above 0, got {shown(self.seconds)}")


Trigger = Every | Stagnant | Elapsed


@dataclass(frozen=True, slots=True)
class Evaluation:
    fired: bool
    target: float


def arm(trigger: Trigger, progress: Progress, now: float) -> float:
    """Return the first target of a heartbeat that begins now. `now`: the run's clock in seconds."""
    match trigger:
        case Every(n):
            return progress.evals + n
        case Stagnant(n):
            return (progress.stagnant // n + 1) * n
        case Elapsed(seconds):
            return now + seconds
        case _:
            assert_never(trigger)


def evaluate(trigger: Trigger, target: float, progress: Progress, now: float) -> Evaluation:
    """Return whether a trigger fires now, and its target from now on. `progress` includes the attempt just
    published."""
    following: float
    match trigger:
        case Every(n):
            fired, following = progress.evals >= target, progress.evals + n
        case Stagnant(n):
            if progress.stagnant == 0:
                return Evaluation(False, n)
            fired, following = progress.stagnant >= target, progress.stagnant + n
        case Elapsed(seconds):
            # Missed periods (a suspended machine, an agent parked for long) are skipped.
            fired, following = now >= target, now + seconds
        case _:
            assert_never(trigger)
    return Evaluation(True, following) if fired else Evaluation(False, target)


def retime(old: Trigger, new: Trigger, target: float, progress: Progress, now: float) -> float:
    """Return the target after a change of the trigger: the current interval may get shorter, never longer. Another kind
    of trigger begins a new interval.

    The current interval is assumed to have begun at `target` less the old length. That is too early for an interval
    that was lengthened while it ran, so that a later shortening makes the heartbeat due at once: early, never late.
    """
    match old, new:
        case (Every(before), Every(after)) | (Stagnant(before), Stagnant(after)):
            return min(target, max(target - before, 0) + after)
        case Elapsed(before_s), Elapsed(after_s):
            return min(target, target - before_s + after_s)
        case _:
            return arm(new, progress, now)
