"""Where the fleet stands, as the agent remembers it: a fold over published records, so that each is read once.

Kept in memory between launches: reading ten thousand records at every start would cost more than the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from attempts.record import Attempt, Direction, Kind

RECENT = 60  # attempts kept in full
GAPS = 200  # numbers still awaited; older ones are given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is kept of an attempt."""

    number: int
    agent: str
    score: float | None
    verdict: str
    title: str
    commit: str
    reason: str = ""

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        return cls(
            number=attempt.number,
            agent=attempt.agent,
            score=attempt.score,
            verdict=str(attempt.verdict),
            title=attempt.title,
            commit=attempt.commit,
            reason=attempt.reason[:300],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """`best`: per agent, "" being the seed. `awaited`: numbers below `next` whose records were not out yet."""

    next: int = 0
    awaited: tuple[int, ...] = ()
    best: Mapping[str, Entry] = field(default_factory=dict)
    recent: tuple[Entry, ...] = ()
    count: int = 0

    def wanted(self, numbers: Iterable[int]) -> list[int]:
        """Which of the published numbers have not been taken in."""
        awaited = set(self.awaited)
        return [number for number in numbers if number >= self.next or number in awaited]

    def take(self, attempts: Iterable[Attempt], direction: Direction) -> Board:
        """The board with more records; the order in which they come does not matter."""
        board, taken = self, set[int]()
        highest = self.next
        for attempt in attempts:
            taken.add(attempt.number)
            highest = max(highest, attempt.number + 1)
            board = board._with(attempt, direction)
        awaited = tuple(n for n in (*self.awaited, *range(self.next, highest)) if n not in taken)[-GAPS:]
        return replace(board, next=highest, awaited=awaited)

    def _with(self, attempt: Attempt, direction: Direction) -> Board:
        entry = Entry.of(attempt)
        real = attempt.kind in (Kind.REAL, Kind.TUNE)
        recent = (*self.recent, entry)[-RECENT:] if real else self.recent
        best = dict(self.best)
        held = best.get(entry.agent)
        better = held is None or held.score is None or direction.better(attempt.score or 0.0, held.score)
        if attempt.score is not None and attempt.kind is not Kind.CONFIRM and better:
            best[entry.agent] = entry
        return replace(self, recent=recent, best=best, count=self.count + real)

    def leader(self, direction: Direction) -> Entry | None:
        """The fleet's best attempt; of equals, the earliest."""
        return leader(self.best.values(), direction)

    def others(self, agent: str, direction: Direction) -> list[Entry]:
        """The best attempts of the other agents, best first."""
        entries = [entry for name, entry in self.best.items() if name not in (agent, "")]
        sign = -1.0 if direction is Direction.MAXIMIZE else 1.0
        return sorted(entries, key=lambda entry: (sign * (entry.score or 0.0), entry.number))


def leader(entries: Iterable[Entry], direction: Direction) -> Entry | None:
    best: Entry | None = None
    for entry in sorted(entries, key=lambda entry: entry.number):
        if entry.score is not None and (best is None or direction.better(entry.score, best.score or 0.0)):
            best = entry
    return best
