"""The ranking, the lineage and the curve computed from all records: what `attempts.index.query` must answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from attempts.index.query import mean
from attempts.record import Attempt, Direction, Kind

_COUNTING = (Kind.REAL, Kind.CONFIRM)


@dataclass(frozen=True, slots=True)
class Standing:
    attempt: Attempt
    score: float
    measurements: int
    confirmed: bool


def leaderboard(attempts: Iterable[Attempt], direction: Direction, limit: int) -> list[Standing]:
    """The best candidates, best first; of equals the earlier one is ahead."""
    return _ranked(_standings(attempts), direction)[:limit]


def lineage(attempts: Iterable[Attempt], number: int) -> list[Attempt]:
    """An attempt and those it was built on, root first. Empty if there is no such attempt."""
    known = sorted(attempts, key=lambda attempt: attempt.order)
    by_commit: dict[str, Attempt] = {}
    for attempt in known:
        by_commit.setdefault(attempt.commit, attempt)
    line: list[Attempt] = []
    seen: set[str] = set()
    current = next((attempt for attempt in known if attempt.number == number), None)
    while current is not None and current.commit not in seen:
        seen.add(current.commit)
        line.append(current)
        current = by_commit.get(current.parent)
    return line[::-1]


def curve(attempts: Iterable[Attempt], direction: Direction) -> list[tuple[str, int, float]]:
    """The best score over time: a point (published_at, order, best) wherever it rises, from the baseline on."""
    points: list[tuple[str, int, float]] = []
    for attempt in sorted(attempts, key=lambda attempt: attempt.order):
        if attempt.kind is Kind.TUNE or attempt.score is None:
            continue
        if not points or direction.better(attempt.score, points[-1][2]):
            points.append((attempt.published_at, attempt.order, attempt.score))
    return points


def _standings(attempts: Iterable[Attempt]) -> list[Standing]:
    measured: dict[str, list[tuple[Attempt, float]]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.order):
        if attempt.kind in _COUNTING and attempt.score is not None:
            measured.setdefault(attempt.tree, []).append((attempt, attempt.score))
    return [
        Standing(
            attempt=found[0][0],
            score=mean([score for _, score in found]),
            measurements=len(found),
            confirmed=any(attempt.kind is Kind.CONFIRM for attempt, _ in found),
        )
        for found in measured.values()
    ]


def _ranked(standings: list[Standing], direction: Direction) -> list[Standing]:
    # Sorting is stable and the standings come in the order of publication: equals keep it.
    return sorted(standings, key=lambda standing: standing.score, reverse=direction is Direction.MAXIMIZE)
