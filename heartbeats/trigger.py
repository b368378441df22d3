"""When a heartbeat is due: every n attempts, at n, 2n, 3n ... attempts without improvement, or by the clock.

A heartbeat that is armed holds one number, its target, in the unit of its trigger. A trigger is looked at after each
single attempt, so that no crossing is jumped over however many attempts settle at once. Retiming never lengthens the
interval that is running: whoever retimes again and again before it fires gains nothing.
"""

from dataclasses import dataclass
from typing import assert_never

from attempts.fields import shown
from attempts.progress import Progress


@dataclass(frozen=True, slots=True)
class Every:
    """After every n attempts that count."""

    n: int

    def __post_init__(self) -> None:
        _check_count(self.n)


@dataclass(frozen=True, slots=True)
class Stagnant:
    """At n, 2n, 3n ... attempts in a row without improvement; an improvement arms it anew."""

    n: int

    def __post_init__(self) -> None:
        _check_count(self.n)


@dataclass(frozen=True, slots=True)
class Elapsed:
    """After so many seconds of the run's clock."""

    seconds: float

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not 0 < self.seconds < 1e15:
            raise ValueError(f"seconds must be a number above 0, got {shown(self.seconds)}")


Trigger = Every | Stagnant | Elapsed


@dataclass(frozen=True, slots=True)
class Step:
    fired: bool
    target: float


def arm(trigger: Trigger, progress: Progress, now: float) -> float:
    """The target of a heartbeat that starts to count here. `now` is the run's clock in seconds."""
    match trigger:
        case Every(n):
            return progress.evals + n
        case Stagnant(n):
            return (progress.stagnant // n + 1) * n
        case Elapsed(seconds):
            return now + seconds
        case _:
            assert_never(trigger)


def step(trigger: Trigger, target: float, progress: Progress, now: float) -> Step:
    """Whether it fires now, and its target from here on. `progress` has taken in the one attempt that just came."""
    following: float
    match trigger:
        case Every(n):
            fired, following = progress.evals >= target, progress.evals + n
        case Stagnant(n):
            if progress.stagnant == 0:
                return Step(False, n)
            fired, following = progress.stagnant >= target, progress.stagnant + n
        case Elapsed(seconds):
            # Periods that were missed (a suspended machine, a long park) are not made up for.
            fired, following = now >= target, now + seconds
        case _:
            assert_never(trigger)
    return Step(True, following) if fired else Step(False, target)


def retime(old: Trigger, new: Trigger, target: float, progress: Progress, now: float) -> float:
    """The target after a change of trigger: the interval that runs may get shorter, never longer.

    Where it last fired is taken as `target - old`. After an interval was lengthened while running that lies too far
    back, and a later shortening makes it due at once: early, never late.
    """
    match old, new:
        case (Every(before), Every(after)) | (Stagnant(before), Stagnant(after)):
            return min(target, max(target - before, 0) + after)
        case Elapsed(before_s), Elapsed(after_s):
            return min(target, target - before_s + after_s)
        case _:
            return arm(new, progress, now)


def _check_count(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be a whole number from 1, got {shown(n)}")
