"""Compass search: one variable at a time, both ways, with a step of its own that grows on success and shrinks on none.

It needs neither gradients nor continuity, so integers and choices can be searched by it.
"""

from collections.abc import Sequence
from math import inf
from random import Random

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.search_space.space import Vector, changed
from coral.search_space.variables import Variable, VariableKind

FIRST_STEP, LAST_STEP = 0.25, 5e-8  # of a real, in scales
GROW, SHRINK = 2.0, 0.4
MOST_SWEEPS = 200


def search_by_compass(
    problem: OptimizationProblem,
    start: EvaluatedPoint,
    indices: Sequence[int],  # of the variables that it may change
    scales: Sequence[float],
    random: Random,
) -> EvaluatedPoint:
    """Sweep until no step of any variable gains; a problem of choices alone ends after one fruitless sweep."""
    variables = problem.space.variables
    finest = {k: _finest_step(variables[k], scales[k]) for k in indices}
    steps = {k: max(finest[k], FIRST_STEP * scales[k]) for k in indices}
    current = start
    for _ in range(MOST_SWEEPS):
        before = current
        for k in random.sample(list(indices), len(indices)):
            tried = problem.evaluate(*_neighbours(problem, current.point, k, steps[k]))
            best = min([current, *tried], key=lambda evaluated: problem.merit(evaluated.measurement))
            gained, current = best is not current, best
            steps[k] = max(finest[k], steps[k] * (GROW if gained else SHRINK))
        if current is before and all(steps[k] <= finest[k] for k in indices):
            break
    return current


def _finest_step(variable: Variable, scale: float) -> float:
    """Return the finest step of a variable; infinite if it has no steps, as choices and permutations."""
    if variable.kind is VariableKind.REAL:
        return LAST_STEP * scale
    return inf if variable.choices or variable.permutation else 1.0


def _neighbours(problem: OptimizationProblem, point: Vector, k: int, step: float) -> list[Vector]:
    """Return the neighbours of a point by one variable: a step up and down; or every other choice; or an exchange with
    each other variable of its permutation."""
    group = problem.space.permutation_of.get(k, ())
    if group:
        return [changed(point, ((k, point[other]), (other, point[k]))) for other in group if other != k]
    choices = problem.space.variables[k].choices
    values = list(range(len(choices))) if choices else [point[k] - step, point[k] + step]
    moved = [problem.space.clip(changed(point, [(k, value)])) for value in values]
    return [neighbour for neighbour in moved if neighbour[k] != point[k]]
