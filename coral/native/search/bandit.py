"""Which family of moves has paid so far: a count of tries and wins that decays, and a random choice that follows it.

Each agent counts for itself and shares its counts in a skill: what others found weighs like a few tries of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from random import Random

from attempts.record import Direction

DECAY = 0.92  # what a result weighs after each later one of the same family
SHARED_TRIES = 3.0  # that the experience of others counts as, at most

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
    """By how much `after` is better; 0 where that cannot be said."""
    if before is None or after is None:
        return 0.0
    return after - before if direction is Direction.MAXIMIZE else before - after


def is_win(gained: float, before: float | None) -> bool:
    """Whether a gain is more than the rounding of the last digits."""
    return gained > ROUNDING * max(1.0, abs(before or 0.0))


@dataclass(frozen=True, slots=True)
class FamilyStats:
    """`gain` is the largest improvement of the score that the family made."""

    tries: float = 0.0
    wins: float = 0.0
    gain: float = 0.0

    def add(self, gain: float) -> "FamilyStats":
        """The counts with one more try; a gain above 0 is a win."""
        won = gain > 0.0
        return FamilyStats(self.tries * DECAY + 1.0, self.wins * DECAY + won, max(self.gain, gain))

    def win_rate(self, family: str) -> float:
        """The expected share of wins, the prior of the family included."""
        return (PRIOR_WINS.get(family, UNKNOWN_WINS) + self.wins) / (PRIOR_TRIES + self.tries)

    def to_dict(self) -> dict[str, float]:
        return {name: round(value, 12) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "FamilyStats":
        """Skip what does not fit: other agents write the files that this reads."""
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
    """Thompson sampling: draw a win rate for each family from what is known of it; the highest is chosen."""

    def draw(family: str) -> float:
        mine, theirs = own.get(family, FamilyStats()), shared.get(family, FamilyStats())
        weight = min(1.0, SHARED_TRIES / theirs.tries) if theirs.tries else 0.0
        prior = PRIOR_WINS.get(family, UNKNOWN_WINS)
        wins = prior + mine.wins + weight * theirs.wins
        losses = PRIOR_TRIES - prior + mine.tries - mine.wins
        return random.betavariate(wins, losses + weight * (theirs.tries - theirs.wins))

    return max(sorted(families), key=draw)
