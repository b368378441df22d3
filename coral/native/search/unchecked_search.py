"""Proposes candidates without a public check: each is a real attempt, so there is one at a time.

A small step whose opposite has just failed is likelier to gain than a random one. Steps grow after a gain, and shrink
otherwise.
"""

from collections.abc import Sequence
from random import Random

from attempts.record import Direction, Verdict
from coral.native.memory import Trial
from coral.native.search.bandit import gain, is_win
from coral.native.search.families import FAMILIES
from coral.native.search.numeric.moves import MoveContext
from coral.native.search.numeric.problem import Measurement, OptimizationProblem
from coral.native.search.numeric.space import SearchSpace, Vector
from coral.native.search.numeric.variables import VariableKind

FIRST_STEP = 0.2  # in scales
GROW, SHRINK = 1.6, 0.87  # with one success in about five, the step stays as it is
SMALLEST_STEP, LARGEST_STEP = 1e-5, 1.0
ONE_IN = 3  # one in this many numbers moves


def propose(
    space: SearchSpace,
    start: Vector,
    others: Sequence[Vector],
    family: str,
    step: float,
    failed: Vector | None,
    random: Random,
) -> Vector:
    """Propose one candidate. `failed`: the last one from the same start by small steps, whose opposite is tried
    next."""
    point, move = start, FAMILIES[family].move
    if family == "shake" and failed is not None:
        point = space.clip([2 * a - b for a, b in zip(start, failed, strict=True)])  # the opposite step
    elif family != "shake" and move is not None:
        problem = OptimizationProblem(space, lambda candidates: [Measurement()] * len(candidates), True)
        context = MoveContext(problem, space.ranges([start, *others]), space.scales([start]), others, random)
        point = move(context, start)
    return point if point != start else _small_step(space, start, step, random)


def next_step(
    trials: Sequence[Trial], family: str, start: int | None, direction: Direction
) -> tuple[float, int | None]:
    """Return how far the next trial of a family is to move, in scales; and the number of its last one from this start,
    if that gained nothing and its opposite has not been tried."""
    step, failed = FIRST_STEP, None
    for trial in trials:
        if trial.family == family:
            won = is_win(gain(trial.before, trial.score, direction), trial.before)
            if trial.step and trial.number is not None and trial.verdict != Verdict.VOID:
                step = min(LARGEST_STEP, max(SMALLEST_STEP, trial.step * (GROW if won else SHRINK)))
            if trial.start == start:
                failed = None if won or failed is not None else trial  # after a failure, this was its opposite
    return step, failed.number if failed is not None else None


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
