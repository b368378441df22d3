"""Proposes candidates for a task without a public check, one at a time: only a graded attempt shows how good one is.

After a small step that failed, the step in the opposite direction is proposed, because it improves the score more often
than a random one. The size of the steps grows after an improvement and shrinks after any other result.
"""

from collections.abc import Sequence
from random import Random

from attempts.record import Direction, Verdict
from coral.native.memory import Trial
from coral.native.search.bandit import is_win
from coral.native.search.families import FAMILIES
from coral.native.search.numeric.moves import MoveContext
from coral.native.search.numeric.problem import OptimizationProblem
from coral.public_check.candidate import Measurement
from coral.search_space.space import SearchSpace, Vector
from coral.search_space.variables import VariableKind

FIRST_STEP = 0.2  # in scales
GROW, SHRINK = 1.6, 0.87  # factors of the step's size; with one improvement in about five, it stays the same
SMALLEST_STEP, LARGEST_STEP = 1e-5, 1.0
MOST_DRAWS = 50  # of a small step, which may draw the same choice again, or lead out of the bounds
ONE_IN = 3  # a small step changes one in this many variables


def propose(
    space: SearchSpace, others: Sequence[Vector], family: str, step: float, failed: Vector | None, random: Random
) -> Vector:
    """Return a candidate that differs from the start. `others`: candidates of other agents; `step`: the size of a small
    step, in scales; `failed`: the candidate of a small step from this start that failed. The opposite step is next."""
    point = start = space.start
    move = FAMILIES[family].move
    if family == "shake" and failed is not None:
        point = space.clip([2 * a - b for a, b in zip(start, failed, strict=True)])  # the opposite step
    elif family != "shake" and move is not None:
        problem = OptimizationProblem(space, lambda candidates: [Measurement()] * len(candidates), True)
        declared = space.takes_declared(random)
        ranges, scales = space.ranges([start, *others], declared=declared), space.scales([start], declared=declared)
        context = MoveContext(problem, ranges, scales, others, random)
        point = move(context, start)
    for _ in range(MOST_DRAWS):
        if point != start:
            break
        point = _small_step(space, start, step, random)
    return point


def next_step(
    trials: Sequence[Trial], family: str, start: int | None, direction: Direction
) -> tuple[float, int | None]:
    """Return the size of a family's next small step, in scales; and the number of its last attempt from this start, if
    that improved nothing and the opposite step was not tried."""
    step, failed = FIRST_STEP, None
    for trial in trials:
        if trial.family == family:
            won = is_win(trial.before, trial.score, direction)
            if trial.step and trial.number is not None and trial.verdict != Verdict.VOID:
                step = min(LARGEST_STEP, max(SMALLEST_STEP, trial.step * (GROW if won else SHRINK)))
            if trial.start == start:
                failed = None if won or failed is not None else trial  # after a failure, this was the opposite step
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
