"""The attempts of the fleet, as the agent remembers them: a fold over published records, so that each is read once.

Kept in memory between launches: reading ten thousand records at every start would cost more than the start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from attempts.record import Attempt, Direction, Kind

RECENT = 60  # attempts kept in full
MOST_AWAITED = 200  # numbers still awaited; older ones are given up
LONGEST_REASON = 300  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempt:
    """What is kept of an attempt's record."""

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
            reason=attempt.reason[:LONGEST_REASON],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAttempts:
    """`best`: per agent, "" being the seed. `awaited`: numbers below `next` whose records were not out yet."""

    next: int = 0
    awaited: tuple[int, ...] = ()
    best: Mapping[str, KnownAttempt] = field(default_factory=dict)
    recent: tuple[KnownAttempt, ...] = ()
    count: int = 0

    def unread(self, numbers: Iterable[int]) -> list[int]:
        """Which of the published numbers have not been added."""
        awaited = set(self.awaited)
        return [number for number in numbers if number >= self.next or number in awaited]

    def add(self, records: Iterable[Attempt], direction: Direction) -> Self:
        """The same with more records; the order in which they come does not matter."""
        known, added = self, set[int]()
        highest = self.next
        for record in records:
            added.add(record.number)
            highest = max(highest, record.number + 1)
            known = known._with(record, direction)
        gaps = (number for number in (*self.awaited, *range(self.next, highest)) if number not in added)
        return replace(known, next=highest, awaited=tuple(gaps)[-MOST_AWAITED:])

    def _with(self, record: Attempt, direction: Direction) -> Self:
        attempt = KnownAttempt.of(record)
        real = record.kind in (Kind.REAL, Kind.TUNE)
        recent = (*self.recent, attempt)[-RECENT:] if real else self.recent
        best = dict(self.best)
        held = best.get(attempt.agent)
        better = held is None or held.score is None or direction.better(record.score or 0.0, held.score)
        if record.score is not None and record.kind is not Kind.CONFIRM and better:
            best[attempt.agent] = attempt
        return replace(self, recent=recent, best=best, count=self.count + real)

    def find(self, number: int | None) -> KnownAttempt | None:
        """The attempt of this number, as far as it is still remembered."""
        known = {attempt.number: attempt for attempt in (*self.recent, *self.best.values())}
        return known.get(number) if number is not None else None

    def fleet_best(self, direction: Direction) -> KnownAttempt | None:
        """The best attempt of all; of equals, the earliest."""
        best: KnownAttempt | None = None
        for attempt in sorted(self.best.values(), key=lambda attempt: attempt.number):
            if attempt.score is not None and (best is None or direction.better(attempt.score, best.score or 0.0)):
                best = attempt
        return best

    def best_of_others(self, agent: str, direction: Direction) -> list[KnownAttempt]:
        """The best attempts of the other agents, best first."""
        attempts = [attempt for name, attempt in self.best.items() if name not in (agent, "")]
        sign = -1.0 if direction is Direction.MAXIMIZE else 1.0
        return sorted(attempts, key=lambda attempt: (sign * (attempt.score or 0.0), attempt.number))
