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
    settled = [each for each in _standings(known) if each.confirmed or noise <= 0]
    for first in _ranked(settled, direction)[:1]:
        marks = [each.score for each in known if each.kind is Kind.BASELINE and each.score is not None]
        if all(direction.better(first.score, mark) for mark in marks):
            return first.attempt
    return None


def lineage(attempts: Iterable[Attempt], number: int) -> list[Attempt]:
    """An attempt and those it was built on, root first. Empty if there is no such attempt."""
    known = sorted(attempts, key=lambda each: each.order)
    by_commit: dict[str, Attempt] = {}
    for each in known:
        by_commit.setdefault(each.commit, each)
    line: list[Attempt] = []
    seen: set[str] = set()
    current = next((each for each in known if each.number == number), None)
    while current is not None and current.commit not in seen:
        seen.add(current.commit)
        line.append(current)
        current = by_commit.get(current.parent)
    return line[::-1]


def curve(attempts: Iterable[Attempt], direction: Direction) -> list[tuple[str, int, float]]:
    """The best score over time: a point (published_at, order, best) wherever it rises, from the baseline on."""
    points: list[tuple[str, int, float]] = []
    for each in sorted(attempts, key=lambda each: each.order):
        if each.kind is Kind.TUNE or each.score is None:
            continue
        if not points or direction.better(each.score, points[-1][2]):
            points.append((each.published_at, each.order, each.score))
    return points


def _standings(attempts: Iterable[Attempt]) -> list[Standing]:
    measured: dict[str, list[tuple[Attempt, float]]] = {}
    for each in sorted(attempts, key=lambda each: each.order):
        if each.kind in _COUNTING and each.score is not None:
            measured.setdefault(each.tree, []).append((each, each.score))
    return [
        Standing(
            attempt=found[0][0],
            score=mean([score for _, score in found]),
            measurements=len(found),
            confirmed=any(each.kind is Kind.CONFIRM for each, _ in found),
        )
        for found in measured.values()
    ]


def _ranked(standings: list[Standing], direction: Direction) -> list[Standing]:
    # Sorting is stable and the standings come in the order of publication: equals keep it.
    return sorted(standings, key=lambda each: each.score, reverse=direction is Direction.MAXIMIZE)


def mean(scores: list[float]) -> float:
    """It lies between the scores, whatever rounding says: what is measured once more never overtakes its best."""
    try:
        found = math.fsum(scores) / len(scores)
    except OverflowError:
        found = sum(score / len(scores) for score in scores)
    return min(max(found, min(scores)), max(scores))
