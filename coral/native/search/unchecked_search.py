"""Search without a public check: every candidate is a real attempt, so each is chosen with some care.

A small step whose opposite has just failed is worth more than a fresh one; steps grow on success and shrink on none.
"""

from collections.abc import Sequence
from random import Random

from coral.native.search.families import FAMILIES
from coral.native.search.numeric.moves import MoveContext
from coral.native.search.numeric.problem import Measurement, OptimizationProblem
from coral.native.search.numeric.space import SearchSpace, Texts, Vector
from coral.native.search.numeric.variables import VariableKind

FIRST_STEP = 0.2  # in scales
GROW, SHRINK = 1.6, 0.87  # about one success in five keeps the step as it is
SMALLEST_STEP, LARGEST_STEP = 1e-5, 1.0
ONE_IN = 3  # one in so many numbers moves


class NoCheck:
    """Measures every candidate as good as every other."""

    def measure(self, candidates: Sequence[Texts]) -> list[Measurement]:
        return [Measurement() for _ in candidates]


def propose(
    space: SearchSpace,
    start: Vector,
    others: Sequence[Vector],
    family: str,
    step: float,
    failed: Vector | None,
    random: Random,
) -> Vector:
    """One candidate. `failed` is the last one from the same start by small steps, if it was no better."""
    move = FAMILIES[family].move
    if family == "shake" and failed is not None:
        point = space.clip([2 * a - b for a, b in zip(start, failed, strict=True)])  # the opposite step
    elif family == "shake":
        point = _small_step(space, start, step, random)
    elif move is not None:
        problem = OptimizationProblem(space, NoCheck(), True)
        context = MoveContext(problem, space.ranges([start, *others]), space.scales([start]), others, random)
        point = move(context, start)
    else:
        point = list(start)
    return point if point != start else _small_step(space, start, max(step, FIRST_STEP), random)


def next_step(step: float, improved: bool) -> float:
    return min(LARGEST_STEP, max(SMALLEST_STEP, step * (GROW if improved else SHRINK)))


def _small_step(space: SearchSpace, start: Vector, step: float, random: Random) -> Vector:
    scales = space.scales([start])
    point = list(start)
    for k in random.sample(range(len(start)), max(1, len(start) // ONE_IN)):
        variable = space.variables[k]
        if variable.kind is VariableKind.CHOICE:
            point[k] = float(random.randrange(len(variable.choices)))
        elif variable.kind is VariableKind.INTEGER:
            point[k] += random.choice((-1, 1)) * max(1, round(abs(random.gauss(0.0, step)) * scales[k]))
        else:
            point[k] += random.gauss(0.0, step) * scales[k]
    return space.clip(point)
