"""Search without a public check: every candidate is a real attempt, so each is chosen with some care.

A small step whose opposite has just failed is worth more than a fresh one; steps grow on success and shrink on none.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from coral.native.search.check import Outcome
from coral.native.search.families import FAMILIES
from coral.native.search.local_search import PRICE
from coral.native.search.numeric.moves import View
from coral.native.search.numeric.problem import Problem
from coral.native.search.numeric.space import Space, Texts, Vector
from coral.native.search.numeric.variables import Kind

FIRST = 0.2  # the first step, in scales
GROW, SHRINK = 1.6, 0.87  # about one success in five keeps the step as it is
SMALLEST, LARGEST = 1e-5, 1.0
SOME = 3  # one in so many numbers moves


class Unmeasured:
    """Stands where a check would: every candidate is as good as every other."""

    def measure(self, candidates: Sequence[Texts]) -> list[Outcome]:
        return [Outcome() for _ in candidates]


def propose(
    space: Space,
    start: Vector,
    others: Sequence[Vector],
    family: str,
    size: float,
    failed: Vector | None,
    random: Random,
) -> Vector:
    """One candidate. `failed` is the last one from the same start by small steps, if it was no better."""
    move = FAMILIES[family].move
    if family == "shake":
        point = _opposite(space, start, failed) if failed is not None else _step(space, start, size, random)
    elif move is not None:
        scales = space.scales([start])
        ranges = [(0.0, 0.0)] * len(space)
        for column in space.columns:
            for variable in column.members:
                ranges[variable] = column.range([start, *others])
        point = move(View(Problem(space, Unmeasured(), True), ranges, scales, others, random, PRICE), start)
    else:
        point = list(start)
    return point if point != start else _step(space, start, max(size, FIRST), random)


def next_size(size: float, improved: bool) -> float:
    return min(LARGEST, max(SMALLEST, size * (GROW if improved else SHRINK)))


def _opposite(space: Space, start: Vector, failed: Vector) -> Vector:
    return space.clip([2 * a - b for a, b in zip(start, failed, strict=True)])


def _step(space: Space, start: Vector, size: float, random: Random) -> Vector:
    scales = space.scales([start])
    point = list(start)
    for k in random.sample(range(len(start)), max(1, len(start) // SOME)):
        spot = space.spots[k]
        if spot.kind is Kind.CHOICE:
            point[k] = float(random.randrange(len(spot.words)))
        elif spot.kind is Kind.INTEGER:
            point[k] += random.choice((-1, 1)) * max(1, round(abs(random.gauss(0.0, size)) * scales[k]))
        else:
            point[k] += random.gauss(0.0, size) * scales[k]
    return space.clip(point)
