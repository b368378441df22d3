"""Local descent: without constraints along the gradient, with constraints by a sequence of linear programs.

Each program is solved by HiGHS in a box around the current point (the trust region), which grows and shrinks with how
well the linear model predicts. Where it predicts badly, curvature matters, and SLSQP goes on. A step is kept if the
merit, which is the cost plus penalised violations, falls. Constraints are kept a small distance inside their limits, so
that the result is strictly feasible.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize

from coral.native.search.numeric.finite_differences import FiniteDifferences, Floats, LinearModel
from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem

NARROWEST = 1e-11  # half the width of the box, in scales
WIDEST = 1e3
CROWDED = 0.1  # half a width, from which on the box widens only after STEPS_TO_EDGE good steps to its edge
STEPS_TO_EDGE = 8
FINISH = 1e-3  # half the width of the box after SLSQP, which comes close, but not strictly within the constraints
POOR, GOOD = 0.2, 0.7  # the share of the predicted gain that came true
POOR_STEPS = 2  # in a row, after which the dependencies are learned again and curvature is followed
MOST_CURVED = 150  # variables for which SLSQP, which works with full matrices, is worth its time
HOPEFUL = 3.0  # times the last gain: more than that is not hoped for any longer
LOOKED_BACK = 10  # steps of L-BFGS-B whose gain counts as the last one: single steps of a long valley gain little
CONVERGED = 0.01  # times the precision: one step that gains less ends even a descent that stops by the mean gain
FEWEST_STEPS = 3  # before a descent is given up
MOST_STEPS = 300
MOST_ITERATIONS = 3000  # of L-BFGS-B or SLSQP: a long curved valley takes more than MOST_STEPS
LARGEST_PENALTY = 1e9  # times its first value
TOLERANCE = 1e-10  # of a program's rows, in half-widths of the box: the smallest that HiGHS takes
EVERYWHERE = 1e9  # scales: the reach of a model with all constraints
UNMEASURED = 1e3  # the cost of a position that cannot be measured, in costs of the best: scipy then turns back


@dataclass(slots=True)
class Descent:
    """One descent, with the state on which its next step depends.

    It stops when a step gains less than `precision` times the cost, or when it is unlikely to reach a merit below
    `target`. With neither constraints nor a target, the mean gain of the last LOOKED_BACK steps must be that small,
    because a single step may gain little far from an optimum."""

    problem: OptimizationProblem
    differences: FiniteDifferences
    precision: float = 1e-8
    target: float | None = None
    radius: float = 0.1  # half the width of the box, in scales
    steps: int = 0
    penalty: float = 0.0
    poor_steps: int = 0  # in a row
    edge_steps: int = 0  # good steps to the edge of the box, in a row

    def run(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """Return the best point reached from `start`, which must have been measured without an error."""
        if not start.measurement.slack:
            return self._follow_curvature(start)
        current, model = start, self.differences.model(start, self.radius)
        self.penalty = first = _fair_penalty(model) or 1.0
        curved = len(self.differences.free) > MOST_CURVED
        for self.steps in range(1, MOST_STEPS + 1):
            step = self._best_step(current, model)
            predicted = self._merit(current) - self._modelled_merit(current, model, step)
            if predicted <= self.precision * max(1.0, abs(self.problem.cost(current.measurement))):
                if current.measurement.worst >= 0.0 or self.penalty >= LARGEST_PENALTY * first:
                    break
                self.penalty *= 10.0
                continue
            moved = self.differences.evaluate(current.point, self.differences.position(current.point) + step)
            gained = self._merit(current) - self._merit(moved)
            self._resize(gained, predicted, float(np.abs(step).max()))
            current = moved if gained > 0.0 else current
            if self.radius < NARROWEST or self._is_hopeless(self.steps, self._merit(current), predicted):
                break
            if self.poor_steps == POOR_STEPS and not curved:
                current, curved, self.radius = self._follow_curvature(current), True, min(self.radius, FINISH)
            elif gained <= 0.0 and not self.differences.outdated:
                continue
            model = self.differences.model(current, self.radius)
            self.penalty = max(self.penalty, _fair_penalty(model))
        return current

    def _follow_curvature(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """Return the point with the least merit that scipy evaluates: by L-BFGS-B without constraints, by SLSQP with
        them."""
        path = _Path(self.differences, self._merit, start)
        merits = [self._merit(start)]  # after each step
        held = bool(start.measurement.slack)
        looked_back = 1 if held else LOOKED_BACK
        by_mean = self.target is None and not held  # stops by the mean gain of several steps

        def count_step(_: Floats) -> None:
            merits.append(self._merit(path.best))
            self.steps += 1
            if len(merits) <= looked_back:
                return
            gained = merits[-1 - looked_back] - merits[-1]
            least = looked_back * self.precision * max(1.0, abs(merits[-1])) if by_mean else 0.0
            if gained < least or self._is_hopeless(len(merits) - 1, merits[-1], gained):
                raise StopIteration

        precision = self.precision * (CONVERGED if by_mean else 1.0)
        with contextlib.suppress(StopIteration):  # which not every method of scipy catches
            minimize(
                path.cost,
                self.differences.position(start.point),
                jac=path.gradient,
                bounds=self.differences.bounds,
                callback=count_step,
                method="SLSQP" if held else "L-BFGS-B",
                constraints=[{"type": "ineq", "fun": path.gaps, "jac": path.gap_slopes}] if held else [],
                options={"ftol": precision, "maxiter": MOST_ITERATIONS} | ({} if held else {"gtol": 0.0}),
            )
        return path.best

    def _is_hopeless(self, steps: int, merit: float, gained: float) -> bool:
        return self.target is not None and steps > FEWEST_STEPS and merit - HOPEFUL * max(gained, 0.0) > self.target

    def _best_step(self, current: EvaluatedPoint, model: LinearModel) -> Floats:
        """Return the best step of the linear model within the box. A broken constraint may stay broken, at a price.

        The program is in units of the box, so that its tolerances shrink with it.
        """
        count, here = len(model.gradient), self.differences.position(current.point)
        box = np.clip((self.differences.bounds - here[:, None]) / self.radius, (-1.0, 0.0), (0.0, 1.0))
        gaps = self.differences.gaps(current.measurement)[model.constraints] / self.radius
        broken = np.eye(len(gaps))[:, gaps < 0.0]
        missed = broken.shape[1]
        unit = float(np.abs(model.gradient).max(initial=1e-300))
        solution = linprog(
            np.append(model.gradient, np.full(missed, self.penalty)) / unit,
            A_ub=-np.hstack((model.rows, broken)),
            b_ub=gaps,
            bounds=np.vstack((box, np.full((missed, 2), (0.0, np.inf)))),
            options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
        )
        return np.zeros(count) if solution.x is None else solution.x[:count] * self.radius

    def _modelled_merit(self, current: EvaluatedPoint, model: LinearModel, step: Floats) -> float:
        gaps = self.differences.gaps(current.measurement)[model.constraints] + model.rows @ step
        cost = self.problem.cost(current.measurement) + float(model.gradient @ step)
        return cost - self.penalty * float(np.minimum(gaps, 0.0).sum())

    def _merit(self, evaluated: EvaluatedPoint) -> float:
        """Return the merit as `OptimizationProblem.merit`, but with every constraint a margin inside its limit."""
        measurement = evaluated.measurement
        if measurement.error or len(measurement.slack) != len(self.differences.largest_slope):
            return self.problem.merit(measurement, self.penalty)
        gaps = self.differences.gaps(measurement)
        return self.problem.cost(measurement) - self.penalty * float(np.minimum(gaps, 0.0).sum())

    def _resize(self, gained: float, predicted: float, longest: float) -> None:
        """Widen the box where the model was good up to its edge, narrow it where it was not."""
        if gained >= GOOD * predicted > 0.0:
            self.poor_steps = 0
            self.edge_steps = self.edge_steps + 1 if longest > 0.9 * self.radius else 0
            if not self.edge_steps:
                self.radius = min(self.radius, 2 * longest)
            elif self.radius < CROWDED or self.edge_steps > STEPS_TO_EDGE:
                self.radius = min(WIDEST, 2 * self.radius)
        elif gained < POOR * predicted:
            self.poor_steps, self.edge_steps = self.poor_steps + 1, 0
            self.radius *= 0.3
            if self.poor_steps == POOR_STEPS:
                self.differences.outdated = True


def _fair_penalty(model: LinearModel) -> float:
    """Return a price per unit of violation above what the objective can gain by it; 0 if no constraint is near."""
    steepest = np.abs(model.rows).max(axis=0, initial=0.0)
    held = steepest > 0.0
    return 3.0 * float((np.abs(model.gradient[held]) / steepest[held]).max(initial=0.0))


class _Path:
    """Answers scipy, which asks for the cost, the slacks and the derivatives of a position one by one.

    Each position is measured only once, its neighbourhood only if scipy asks for derivatives. For a position that
    cannot be measured, the answers are those of the best point, but with a much higher cost.
    """

    def __init__(
        self, differences: FiniteDifferences, merit: Callable[[EvaluatedPoint], float], start: EvaluatedPoint
    ) -> None:
        self.differences, self.merit, self.best = differences, merit, start
        self._here, self._position, self._failed = start, differences.position(start.point), False
        self._model: LinearModel | None = None

    def cost(self, position: Floats) -> float:
        cost = self.differences.problem.cost(self._go(position).measurement)
        return cost + UNMEASURED * max(1.0, abs(cost)) if self._failed else cost

    def gradient(self, position: Floats) -> Floats:
        return self._linearised(position).gradient.copy()  # scipy writes into it

    def gaps(self, position: Floats) -> Floats:
        return self.differences.gaps(self._go(position).measurement)

    def gap_slopes(self, position: Floats) -> Floats:
        model = self._linearised(position)
        slopes = np.zeros((len(self.differences.largest_slope), len(position)))
        slopes[model.constraints] = model.rows
        return slopes

    def _go(self, position: Floats) -> EvaluatedPoint:
        """Return the point with the answers for a position: the one there, if it can be measured."""
        if not np.array_equal(position, self._position):
            self._position, self._model = position.copy(), None
            here = self.differences.evaluate(self.best.point, position)
            self.best = min(self.best, here, key=self.merit)
            self._failed = bool(here.measurement.error)
            self._here = self.best if self._failed else here
        return self._here

    def _linearised(self, position: Floats) -> LinearModel:
        around = self._go(position)
        if self._model is None:
            self._model = self.differences.model(around, EVERYWHERE)
        return self._model
