"""Chooses a family of moves at random, by how often it has gained: tries and wins are counted, and old ones decay.

Each agent counts for itself and shares its counts in a skill: those of others weigh like a few tries of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from random import Random

from attempts.record import Direction

DECAY = 0.92  # what a result weighs after each later one of the same family
SHARED_TRIES = 3.0  # as which the counts of others weigh, at most

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
    """The counts of one family. `gain`: the largest improvement of the score that it made."""

    tries: float = 0.0
    wins: float = 0.0
    gain: float = 0.0

    def add(self, gain: float) -> "FamilyStats":
        """Return the counts with one more try; a gain above 0 is a win."""
        won = gain > 0.0
        return FamilyStats(self.tries * DECAY + 1.0, self.wins * DECAY + won, max(self.gain, gain))

    def win_rate(self, family: str) -> float:
        """Return the expected share of wins, the prior of the family included."""
        return (PRIOR_WINS.get(family, UNKNOWN_WINS) + self.wins) / (PRIOR_TRIES + self.tries)

    def to_dict(self) -> dict[str, float]:
        return {name: round(value, 12) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "FamilyStats":
        """Read counts; a value that cannot be one counts as 0, since other agents write the files."""
        values = [data.get(name, 0.0) for name in ("tries", "wins", "gain")]
        tries, wins, gain = (float(v) if isinstance(v, int | float) and 0 <= v < 1e9 else 0.0 for v in values)
        return cls(tries, min(wins, tries), gain)


StatsByFamily = Mapping[str, FamilyStats]


def merge_stats(shared: Iterable[StatsByFamily]) -> dict[str, FamilyStats]:
    out: dict[str, FamilyStats] = {}
    for by_family in shared:
        for family, stats in by_family.items():
            total = out.get(family, FamilyStats())
            out[family] = FamilyStats(total.tries + stats.tries, total.wins + stats.wins, max(total.gain, stats.gain))
    return out


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
