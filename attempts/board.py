"""Where everybody stands, as data: every view is derived from the records, and none is stored.

Attempts with the same tree are one candidate, measured several times. It stands at the mean of its measurements,
so that on a noisy task nobody leads by a lucky one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attempts.record import Attempt, Direction, Kind

_COUNTING = (Kind.REAL, Kind.CONFIRM)


@dataclass(frozen=True, slots=True)
class Standing:
    """A candidate: the first attempt that had this tree, the mean of its scores, and how many there are."""

    attempt: Attempt
    score: float
    measurements: int
    confirmed: bool


def leaderboard(attempts: Iterable[Attempt], direction: Direction, limit: int) -> list[Standing]:
    """The best candidates, best first; of equals the earlier one is ahead."""
    return _ranked(_standings(attempts), direction)[:limit]


def record(attempts: Iterable[Attempt], direction: Direction, noise: float) -> Attempt | None:
    """The fleet's best, if it beats the baseline. On a noisy task it must have been confirmed."""
    known = list(attempts)
    settled = [standing for standing in _standings(known) if standing.confirmed or noise <= 0]
    for first in _ranked(settled, direction)[:1]:
        marks = [attempt.score for attempt in known if attempt.kind is Kind.BASELINE and attempt.score is not None]
        if all(direction.better(first.score, mark) for mark in marks):
            return first.attempt
    return None


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


def mean(scores: list[float]) -> float:
    """It lies between the scores, whatever rounding says: what is measured once more never overtakes its best."""
    try:
        found = math.fsum(scores) / len(scores)
    except OverflowError:
        found = sum(score / len(scores) for score in scores)
    return min(max(found, min(scores)), max(scores))
