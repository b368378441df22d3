"""Chooses a family of moves at random, by how often it has gained: tries and wins are counted, and old ones decay.

Each agent counts for itself and shares the fleet's counts in a skill: these weigh like a few tries of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from attempts.record import Direction, Verdict
from coral.native.memory import Trial

DECAY = 0.92  # what a result weighs after each later one of the same family
SHARED_TRIES = 3.0  # as which the counts of a skill weigh, at most

# The prior: expected wins in two tries, for families of which nothing is known yet.
PRIOR_WINS = {
    "descent": 1.2,
    "rows": 1.5,
    "jump": 1.2,
    "shake": 1.0,
    "cross": 1.0,
    "swap": 0.9,
    "scatter": 0.4,
    "compass": 0.4,
    "evolution": 0.4,
    "tabu": 1.6,
    "anneal": 1.4,
}
PRIOR_TRIES = 2.0
UNKNOWN_WINS = 0.6  # the prior of a family that is not listed
ROUNDING = 1e-9  # relative: smaller gains are no win and prove nothing


def gain(before: float | None, after: float | None, direction: Direction) -> float:
    """Return by how much `after` is better, in units of the score; 0 if one of them is None."""
    if before is None or after is None:
        return 0.0
    return after - before if direction is Direction.MAXIMIZE else before - after


def is_win(gained: float, before: float | None) -> bool:
    """Return whether a gain is more than the rounding of the last digits."""
    return gained > ROUNDING * max(1.0, abs(before or 0.0))


@dataclass(frozen=True, slots=True)
class FamilyStats:
    """The counts of one family."""

    tries: float = 0.0
    wins: float = 0.0

    def add(self, won: bool) -> "FamilyStats":
        return FamilyStats(self.tries * DECAY + 1.0, self.wins * DECAY + won)

    def win_rate(self, family: str) -> float:
        """Return the expected share of wins, the prior of the family included."""
        return (PRIOR_WINS.get(family, UNKNOWN_WINS) + self.wins) / (PRIOR_TRIES + self.tries)


StatsByFamily = Mapping[str, FamilyStats]


def stats_of(trials: Iterable[Trial], direction: Direction) -> dict[str, FamilyStats]:
    """Count the trials of each family, the latest last; a trial that led to no attempt is a failed try."""
    stats: dict[str, FamilyStats] = {}
    for trial in trials:
        if trial.verdict != Verdict.VOID:
            won = is_win(gain(trial.before, trial.score, direction), trial.before)
            stats[trial.family] = stats.get(trial.family, FamilyStats()).add(won)
    return stats


def sample_family(families: Iterable[str], own: StatsByFamily, shared: StatsByFamily, random: Random) -> str:
    """Choose a family by Thompson sampling: draw a win rate for each from what is known of it, and take the highest."""

    def draw(family: str) -> float:
        mine, theirs = own.get(family, FamilyStats()), shared.get(family, FamilyStats())
        weight = min(1.0, SHARED_TRIES / theirs.tries) if theirs.tries else 0.0
        prior = PRIOR_WINS.get(family, UNKNOWN_WINS)
        wins = prior + mine.wins + weight * theirs.wins
        losses = PRIOR_TRIES - prior + mine.tries - mine.wins
        return random.betavariate(wins, losses + weight * (theirs.tries - theirs.wins))

    return max(sorted(families), key=draw)
