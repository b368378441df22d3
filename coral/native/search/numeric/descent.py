"""Constrained local descent: a sequence of elastic linear (or, where curvature shows, quadratic) programs in a box.

A step is kept when the merit - cost plus penalised violations - falls as the model predicted; the box (the trust
region) grows and shrinks with how well the model predicts. Constraints are kept at a small distance from broken, so
that what converges is strictly feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from operator import mul

from coral.native.search.numeric.curvature import Curvature
from coral.native.search.numeric.finite_differences import FiniteDifferences, LinearModel
from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.qp import QuadraticProgram, solve
from coral.native.search.numeric.space import Vector

NARROWEST = 1e-11  # half the width of the box, in scales
WIDEST = 1e3
CROWDED = 0.1  # beyond, the box of a constrained problem widens only after several steps to its edge
STEPS_TO_EDGE = 8  # so many
POOR, GOOD = 0.2, 0.7  # the share of the predicted gain that came true
MARGIN = 1e-12  # of a constraint's slope: how far inside it a finished point stays
HOPEFUL = 3.0  # further gains of this many times the last predicted one are still hoped for
MOST_STEPS = 300
MOST_CURVED = 150  # variables for which curvature is modelled
SHARPER = 1e-3  # how much more accurately a program is solved that seemed to promise nothing
FIRST, NEXT = 1e-2, 0.1  # accuracy of the first program, and of a next one as a share of the gain last predicted
FINEST = 1e-14  # relative accuracy of a program's solution
LARGEST_PENALTY = 1e9  # times its first value


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop: gains below `precision` (relative), or no hope of a merit below `target`."""

    precision: float = 1e-8
    target: float | None = None
    radius: float = 0.1  # the first half-width of the box, in scales


@dataclass(slots=True)
class Descent:
    """One descent; its state is what the next step depends on."""

    problem: OptimizationProblem
    differences: FiniteDifferences
    goal: Goal
    steps: int = 0
    radius: float = 0.0
    penalty: float = 0.0
    curved: bool = False  # whether curvature is modelled
    unconstrained: bool = False
    poor_steps: int = 0  # in a row
    edge_steps: int = 0  # good steps to the edge of the box, in a row
    curvature: Curvature = field(init=False)

    def __post_init__(self) -> None:
        self.radius = self.goal.radius
        self.curvature = Curvature(len(self.differences.free))

    def run(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """The best point reached from `start`, which must have been measured without an error."""
        current, model = start, self._model(start)
        self.penalty = first = _fair_penalty(model) or 1.0
        self.curved = self.unconstrained = not start.measurement.slack
        accuracy = FIRST
        for self.steps in range(1, MOST_STEPS + 1):
            solution = solve(self._program(current, model), accuracy * self._unit(current))
            predicted = self._merit(current) - self._modelled_merit(current, model, solution.step)
            if predicted <= self.goal.precision * self._unit(current):
                if accuracy > NEXT * self.goal.precision:
                    accuracy *= SHARPER
                elif current.measurement.worst >= 0.0 or self.penalty >= LARGEST_PENALTY * first:
                    break
                else:
                    self.penalty *= 10.0
                continue
            moved = self._move(current, solution.step)
            gained = self._merit(current) - self._merit(moved)
            self._resize(gained, predicted, solution.step)
            accuracy = max(FINEST, min(accuracy, NEXT * predicted / self._unit(current)))
            if gained > 0.0:
                new_model = self._model(moved)
                if self.curved:
                    self.curvature.update(solution.step, _gradient_change(model, new_model, solution.multipliers))
                current, model = moved, new_model
                self.penalty = max(self.penalty, _fair_penalty(model))
            elif self.differences.outdated:
                model = self._model(current)
            if self.radius < NARROWEST or self._is_hopeless(current, predicted):
                break
        return current

    def _unit(self, evaluated: EvaluatedPoint) -> float:
        """The size of costs here, which relative accuracies are shares of."""
        return max(1.0, abs(self.problem.cost(evaluated.measurement)))

    def _model(self, evaluated: EvaluatedPoint) -> LinearModel:
        return self.differences.model(evaluated.point, evaluated.measurement, self.radius)

    def _program(self, current: EvaluatedPoint, model: LinearModel) -> QuadraticProgram:
        """The local model; a declared bound narrows the box on its side."""
        low, high = [], []
        for k, scale in zip(self.differences.free, self.differences.scales, strict=True):
            variable = self.problem.space.variables[k]
            low.append(max(-self.radius, (variable.low - current.point[k]) / scale))
            high.append(min(self.radius, (variable.high - current.point[k]) / scale))
        return QuadraticProgram(
            gradient=model.gradient,
            curvature=self.curvature.matrix if self.curved else None,
            rows=model.rows,
            offsets=[
                current.measurement.slack[constraint] - MARGIN * row.size()
                for constraint, row in zip(model.constraints, model.rows, strict=True)
            ],
            lower=low,
            upper=high,
            penalty=self.penalty,
        )

    def _modelled_merit(self, current: EvaluatedPoint, model: LinearModel, step: Vector) -> float:
        """The merit that the model predicts after a step."""
        value: float = self.problem.cost(current.measurement) + sum(map(mul, model.gradient, step))
        if self.curved and self.curvature.matrix is not None:
            product: list[float] = [sum(map(mul, line, step)) for line in self.curvature.matrix]
            value += 0.5 * sum(map(mul, step, product))
        for constraint, row in zip(model.constraints, model.rows, strict=True):
            gap = current.measurement.slack[constraint] - MARGIN * row.size() + row.dot(step)
            if gap < 0.0:
                value -= self.penalty * gap
        return value

    def _merit(self, evaluated: EvaluatedPoint) -> float:
        """As `OptimizationProblem.merit`, with every constraint a margin inside."""
        measurement, slopes = evaluated.measurement, self.differences.largest_slope
        if measurement.error:
            return inf
        value = self.problem.cost(measurement)
        if measurement.worst < MARGIN * max(slopes.values(), default=0.0):
            for constraint, gap in enumerate(measurement.slack):
                gap -= MARGIN * slopes.get(constraint, 0.0)
                if gap < 0.0:
                    value -= self.penalty * gap
        return value

    def _move(self, current: EvaluatedPoint, step: Vector) -> EvaluatedPoint:
        point = list(current.point)
        for k, scale, change in zip(self.differences.free, self.differences.scales, step, strict=True):
            point[k] += scale * change
        return self.problem.evaluate(self.problem.space.clip(point))[0]

    def _resize(self, gained: float, predicted: float, step: Vector) -> None:
        """Widen the box where the model was good up to its edge, narrow it where it was not."""
        longest = max(map(abs, step), default=0.0)
        if gained >= GOOD * predicted > 0.0:
            self.poor_steps = 0
            self.edge_steps = self.edge_steps + 1 if longest > 0.9 * self.radius else 0
            if not self.edge_steps:
                self.radius = min(self.radius, 2 * longest)
            elif self.unconstrained or self.radius < CROWDED or self.edge_steps > STEPS_TO_EDGE:
                self.radius = min(WIDEST, 2 * self.radius)
        elif gained < POOR * predicted:
            self.poor_steps, self.edge_steps = self.poor_steps + 1, 0
            self.radius *= 0.3
            if self.poor_steps == 2:
                self.differences.outdated = True  # a prediction failed: learn again what depends on what
                self.curved = self.curved or len(step) <= MOST_CURVED

    def _is_hopeless(self, current: EvaluatedPoint, predicted: float) -> bool:
        target = self.goal.target
        return target is not None and self.steps > 3 and self._merit(current) - HOPEFUL * max(predicted, 0.0) > target


def _fair_penalty(model: LinearModel) -> float:
    """A price per unit of violation above what the objective can gain from one; 0 where no constraint is near."""
    steepest = [0.0] * len(model.gradient)
    for row in model.rows:
        for column, value in zip(row.columns, row.values, strict=True):
            steepest[column] = max(steepest[column], abs(value))
    return 3.0 * max((abs(g) / s for g, s in zip(model.gradient, steepest, strict=True) if s), default=0.0)


def _gradient_change(old: LinearModel, new: LinearModel, multipliers: Vector) -> Vector:
    """How the Lagrangian's gradient changed between two models, at the multipliers of the first."""
    change = [b - a for a, b in zip(old.gradient, new.gradient, strict=True)]
    new_rows = dict(zip(new.constraints, new.rows, strict=True))
    for constraint, row, multiplier in zip(old.constraints, old.rows, multipliers, strict=True):
        if constraint in new_rows:
            for column, a, b in zip(row.columns, row.values, new_rows[constraint].values, strict=True):
                change[column] -= multiplier * (b - a)
    return change
