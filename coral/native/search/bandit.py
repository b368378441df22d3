"""Chooses a family of moves at random, by how often it has gained: tries and wins are counted, and old ones decay.

Each agent counts for itself and shares the fleet's counts in a skill: these weigh like a few tries of its own.
"""

from collections.abc import Iterable, Mapping
from random import Random

from attempts.record import Direction, Verdict
from coral.native.memory import Trial
from coral.native.search.families import FAMILIES

DECAY = 0.92  # what a result weighs after each later one of the same family
SHARED_TRIES = 6.0  # as which the counts of a skill weigh, at most

PRIOR_TRIES = 4.0  # as which the prior of a family weighs
ROUNDING = 1e-9  # relative: smaller gains are no win and prove nothing

Counts = Mapping[str, tuple[float, float]]  # tries and wins of each family


def gain(before: float | None, after: float | None, direction: Direction) -> float:
    """Return by how much `after` is better, in units of the score; 0 if one of them is None."""
    if before is None or after is None:
        return 0.0
    return after - before if direction is Direction.MAXIMIZE else before - after


def is_win(before: float | None, after: float | None, direction: Direction) -> bool:
    """Return whether `after` is better by more than the rounding of the last digits."""
    return gain(before, after, direction) > ROUNDING * max(1.0, abs(before or 0.0))


def counts_of(trials: Iterable[Trial], direction: Direction, seed: int | None = None) -> Counts:
    """Count the trials of each family, the latest last; a trial that led to no attempt is a failed try. A gain over the
    seed, the attempt with that number, is left out: nearly any search gains there."""
    counts: dict[str, tuple[float, float]] = {}
    for trial in trials:
        won = is_win(trial.before, trial.score, direction)
        if trial.verdict != Verdict.VOID and not (won and trial.start in (None, seed)):
            tries, wins = counts.get(trial.family, (0.0, 0.0))
            counts[trial.family] = (tries * DECAY + 1.0, wins * DECAY + won)
    return counts


def expected(family: str, counts: Counts) -> tuple[float, float]:
    """Return the wins and losses of a family, those of its prior included."""
    tries, wins = counts.get(family, (0.0, 0.0))
    prior = FAMILIES[family].prior
    return prior + wins, PRIOR_TRIES - prior + tries - wins


def sample_family(families: Iterable[str], own: Counts, shared: Counts, random: Random) -> str:
    """Choose a family by Thompson sampling: draw a win rate for each from what is known of it, and take the highest."""

    def draw(family: str) -> float:
        (wins, losses), (tries, won) = expected(family, own), shared.get(family, (0.0, 0.0))
        weight = min(1.0, SHARED_TRIES / tries) if tries else 0.0
        return random.betavariate(wins + weight * won, losses + weight * (tries - won))

    return max(sorted(families), key=draw)
