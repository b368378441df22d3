"""Descent that reckons with curvature, by scipy: L-BFGS-B without constraints, SLSQP with them.

Both ask for costs, slacks and derivatives one by one; each position is measured only once, and its neighbourhood
only where derivatives are asked for.
"""

import contextlib
from collections.abc import Callable
from math import inf

import numpy as np
from scipy.optimize import minimize

from coral.native.search.numeric.finite_differences import FiniteDifferences, Floats, LinearModel
from coral.native.search.numeric.problem import EvaluatedPoint

UNMEASURED = 1e3  # how many times worse than the best a position counts that cannot be measured: scipy turns back
MOST_STEPS = 300

Merit = Callable[[EvaluatedPoint], float]


class _GivenUp(Exception):  # noqa: N818
    """There is no hope of what was asked for."""


def follow_curvature(
    differences: FiniteDifferences,
    start: EvaluatedPoint,
    merit: Merit,
    precision: float,
    is_hopeless: Callable[[int, float, float], bool],  # of the steps made, the merit reached, the last gain
) -> EvaluatedPoint:
    """The point of the lowest merit that was met on the way to the optimum."""
    path = _Path(differences, merit, start)
    steps, last = 0, merit(start)

    def count_step(_: Floats) -> None:
        nonlocal steps, last
        reached = merit(path.best)
        steps, gained, last = steps + 1, last - reached, reached
        if is_hopeless(steps, reached, gained):
            raise _GivenUp

    options = {"ftol": precision, "maxiter": MOST_STEPS}
    if start.measurement.slack:
        constraints = {"type": "ineq", "fun": path.gaps, "jac": path.gap_slopes}
        method = {"method": "SLSQP", "constraints": constraints, "options": options}
    else:
        method = {"method": "L-BFGS-B", "options": {**options, "gtol": 0.0}}
    with contextlib.suppress(_GivenUp):
        minimize(
            path.cost,
            differences.position(start.point),
            jac=path.gradient,
            bounds=np.column_stack((differences.low, differences.high)),
            callback=count_step,
            **method,
        )
    return path.best


class _Path:
    """The positions that scipy asks about. One that cannot be measured counts as the best point, but much worse."""

    def __init__(self, differences: FiniteDifferences, merit: Merit, start: EvaluatedPoint) -> None:
        self.differences, self.merit, self.best = differences, merit, start
        self._here, self._position = start, differences.position(start.point)
        self._model: LinearModel | None = None

    def cost(self, position: Floats) -> float:
        here = self._go(position)
        cost = self.differences.problem.cost((self.best if here.measurement.error else here).measurement)
        return cost + UNMEASURED * max(1.0, abs(cost)) if here.measurement.error else cost

    def gradient(self, position: Floats) -> Floats:
        return self._linearised(position).gradient.copy()  # scipy writes into it

    def gaps(self, position: Floats) -> Floats:
        here = self._go(position)
        return self.differences.gaps((self.best if here.measurement.error else here).measurement)

    def gap_slopes(self, position: Floats) -> Floats:
        model = self._linearised(position)
        slopes = np.zeros((len(self.differences.largest_slope), len(position)))
        slopes[model.constraints] = model.rows
        return slopes

    def _go(self, position: Floats) -> EvaluatedPoint:
        if not np.array_equal(position, self._position):
            self._position, self._model = position.copy(), None
            self._here = self.differences.evaluate(self.best.point, position)
            self.best = min(self.best, self._here, key=self.merit)
        return self._here

    def _linearised(self, position: Floats) -> LinearModel:
        here = self._go(position)
        if self._model is None:
            around = self.best if here.measurement.error else here
            self._model = self.differences.model(around.point, around.measurement, inf)
        return self._model
