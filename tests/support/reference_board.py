"""The ranking, the lineage and the curve computed from all records: what `attempts.index.query` must answer."""

from collections.abc import Iterable

from attempts.index.query import Ranked, mean
from attempts.record import Attempt, Direction, Kind


def leaderboard(attempts: Iterable[Attempt], direction: Direction) -> list[Ranked]:
    """The best candidates, best first; of equals the earlier one is ahead."""
    measured: dict[str, list[tuple[Attempt, float]]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.order):
        if attempt.kind in (Kind.REAL, Kind.CONFIRM) and attempt.score is not None:
            measured.setdefault(attempt.tree, []).append((attempt, attempt.score))
    candidates = [
        Ranked(
            number=found[0][0].number,
            score=mean([score for _, score in found]),
            measurements=len(found),
            confirmed=any(attempt.kind is Kind.CONFIRM for attempt, _ in found),
        )
        for found in measured.values()
    ]
    return sorted(candidates, key=lambda candidate: candidate.score, reverse=direction is Direction.MAXIMIZE)


def lineage(attempts: Iterable[Attempt], number: int) -> list[int]:
    """An attempt and those it was built on, root first."""
    known = sorted(attempts, key=lambda attempt: attempt.order)
    current = next((attempt for attempt in known if attempt.number == number), None)
    line: list[Attempt] = []
    while current is not None and current.commit not in {attempt.commit for attempt in line}:
        line.append(current)
        parent = current.parent
        current = next((attempt for attempt in known if attempt.commit == parent), None)
    return [attempt.number for attempt in line[::-1]]


def curve(attempts: Iterable[Attempt], direction: Direction) -> list[tuple[str, int, int, float]]:
    """The best score over time: a point wherever it rises, from the baseline on."""
    points: list[tuple[str, int, int, float]] = []
    for attempt in sorted(attempts, key=lambda attempt: attempt.order):
        if attempt.kind is Kind.TUNE or attempt.score is None:
            continue
        if not points or direction.better(attempt.score, points[-1][3]):
            points.append((attempt.published_at, attempt.order, attempt.number, attempt.score))
    return points
