"""Which family has paid so far: a count of tries and wins that forgets slowly, and a draw that follows it.

Credit is kept by each agent and shared as a skill: what others found counts like a few tries of one's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from random import Random

FORGET = 0.92  # what an episode's result is worth after each later one of the same family
BORROWED = 3.0  # tries that the experience of others counts as, at most

# What is worth trying where nothing is known: wins in two tries.
FIRST_GUESS = {
    "descent": 1.2,
    "rows": 1.5,
    "jump": 1.2,
    "shake": 1.0,
    "cross": 1.0,
    "swap": 0.9,
    "scatter": 0.4,
    "compass": 0.4,
    "evolution": 0.4,
}


@dataclass(frozen=True, slots=True)
class Credit:
    """`gain` is the largest improvement of the score that the family made."""

    tries: float = 0.0
    wins: float = 0.0
    gain: float = 0.0

    def after(self, gain: float) -> Credit:
        won = gain > 0.0
        return Credit(self.tries * FORGET + 1.0, self.wins * FORGET + won, max(self.gain, gain))

    def rate(self, name: str) -> float:
        """How often the family may be expected to win, what is worth trying anyway included."""
        return (FIRST_GUESS.get(name, 0.6) + self.wins) / (2.0 + self.tries)

    def to_dict(self) -> dict[str, float]:
        return {name: round(value, 12) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Credit:
        """Tolerant: shared files are written by others."""
        values = [data.get(name, 0.0) for name in ("tries", "wins", "gain")]
        tries, wins, gain = (float(v) if isinstance(v, int | float) and 0 <= v < 1e9 else 0.0 for v in values)
        return cls(tries, min(wins, tries), gain)


Book = Mapping[str, Credit]


def merge(books: Iterable[Book]) -> dict[str, Credit]:
    """The experience of several agents as one."""
    out: dict[str, Credit] = {}
    for book in books:
        for name, credit in book.items():
            sofar = out.get(name, Credit())
            out[name] = Credit(sofar.tries + credit.tries, sofar.wins + credit.wins, max(sofar.gain, credit.gain))
    return out


def draw(names: Iterable[str], own: Book, shared: Book, random: Random) -> str:
    """Thompson sampling: each family draws a success rate from what is known of it; the highest goes next."""

    def rate(name: str) -> float:
        mine, theirs = own.get(name, Credit()), shared.get(name, Credit())
        share = min(1.0, BORROWED / theirs.tries) if theirs.tries else 0.0
        wins = FIRST_GUESS.get(name, 0.6) + mine.wins + share * theirs.wins
        losses = 2.0 - FIRST_GUESS.get(name, 0.6) + mine.tries - mine.wins
        return random.betavariate(wins, losses + share * (theirs.tries - theirs.wins))

    return max(sorted(names), key=rate)
