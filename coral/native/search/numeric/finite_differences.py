"""Gradients by finite differences, with few measurements: variables that share no constraint are stepped together.

Which constraint depends on which variables is learned once, at a point chosen at random so that no derivative vanishes
by symmetry, and extended whenever a prediction fails. An objective that proves linear is not differenced again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from coral.native.search.numeric.problem import Measurement, OptimizationProblem
from coral.native.search.numeric.space import Vector
from coral.native.search.numeric.sparse import SparseRow

STEP = 1e-7  # of a variable's scale: rounding and curvature then weigh about alike
RANDOM_OFFSET = 1e-2  # of a variable's scale: away from symmetry, to learn what depends on what
SAFETY = 0.6  # the share of its largest slope by which a constraint can be expected to move
LINEAR = 1e-5  # relative difference of two gradients of a linear objective
OBJECTIVE = -1  # its number among the constraints


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Objective and nearby constraints linearised around a point, in units of the variables' scales."""

    gradient: Vector
    rows: list[SparseRow]
    constraints: list[int]  # the number of the constraint that each row stands for


class FiniteDifferences:
    """Linearises one problem in its free variables; knows more of its sparsity after every call.

    Inside, a variable is named by its position in `free`, and the objective counts as one more constraint.
    """

    def __init__(
        self, problem: OptimizationProblem, free: Sequence[int], scales: Sequence[float], random: Random
    ) -> None:
        self.problem, self.free, self.random = problem, list(free), random
        self.scales = [scales[k] for k in free]
        self.largest_slope: dict[int, float] = {}  # of each constraint, as far as seen
        self.outdated = True  # whether the dependencies have to be learned before the next model
        self._variables_of: dict[int, set[int]] = {}  # each constraint's
        self._columns: dict[int, tuple[int, ...]] = {}  # the same, in order
        self._gradient: Vector = []  # of an objective that is linear so far
        self._linear = False

    def model(self, point: Vector, measurement: Measurement, reach: float) -> LinearModel:
        """The model for steps of up to `reach` scales, with the constraints that such a step could break."""
        if self.outdated:
            self._learn_dependencies(point, measurement)
        near = [
            constraint
            for constraint, gap in enumerate(measurement.slack)
            if constraint in self._variables_of and gap <= reach * SAFETY * self.largest_slope[constraint]
        ]
        groups = self._groups(near if self._linear else [OBJECTIVE, *near])
        stepped, steps = self._step_groups(point, groups)
        return self._model(measurement, near, groups, stepped, steps)

    def _learn_dependencies(self, point: Vector, measurement: Measurement) -> None:
        """Step each variable alone, at a point off any symmetry; remember which constraints changed."""
        origin = list(point)
        for k, scale in zip(self.free, self.scales, strict=True):
            origin[k] += RANDOM_OFFSET * scale * self.random.uniform(-1, 1)
        origin = self.problem.space.clip(origin)
        base = self.problem.measure([origin])[0]
        if base.error or len(base.slack) != len(measurement.slack):
            origin, base = list(point), measurement
        self._variables_of.setdefault(OBJECTIVE, set())
        self._gradient = []
        slopes: dict[int, float] = {}
        stepped, steps = self._step_groups(origin, [[position] for position in range(len(self.free))])
        for position, (after, step) in enumerate(zip(stepped, steps, strict=True)):
            slope = 0.0
            if not after.error and len(after.slack) == len(base.slack):
                slope = (self.problem.cost(after) - self.problem.cost(base)) / step[position] * self.scales[position]
                for constraint, (old, new) in enumerate(zip(base.slack, after.slack, strict=True)):
                    if new != old:
                        self._variables_of.setdefault(constraint, set()).add(position)
                        steepness = abs(new - old) / abs(step[position]) * self.scales[position]
                        slopes[constraint] = slopes.get(constraint, 0.0) + steepness
            if slope:
                self._variables_of[OBJECTIVE].add(position)
            self._gradient.append(slope)
        self._columns = {constraint: tuple(sorted(held)) for constraint, held in self._variables_of.items()}
        for constraint, largest in slopes.items():
            self.largest_slope[constraint] = max(largest, self.largest_slope.get(constraint, 0.0))
        self._linear = False  # until the gradient elsewhere proves to be the same
        self.outdated = False

    def _groups(self, constraints: Sequence[int]) -> list[list[int]]:
        """Variables that can be stepped together because none of these constraints depends on two of one group."""
        constraints_of: dict[int, list[int]] = {}
        for constraint in constraints:
            for position in self._variables_of[constraint]:
                constraints_of.setdefault(position, []).append(constraint)
        groups: list[list[int]] = []
        touched: list[set[int]] = []  # by each group
        for position in sorted(constraints_of, key=lambda position: -len(constraints_of[position])):
            for group, group_constraints in zip(groups, touched, strict=True):
                if group_constraints.isdisjoint(constraints_of[position]):
                    group.append(position)
                    group_constraints.update(constraints_of[position])
                    break
            else:
                groups.append([position])
                touched.append(set(constraints_of[position]))
        return groups

    def _step_groups(
        self, point: Vector, groups: Sequence[Sequence[int]]
    ) -> tuple[list[Measurement], list[dict[int, float]]]:
        """Measure a step of each group; one that cannot be measured upwards is tried downwards."""
        measurements, steps = self._measure_steps(point, groups, 1.0)
        failed = [k for k, measurement in enumerate(measurements) if measurement.error]
        if failed:
            repeated, downwards = self._measure_steps(point, [groups[k] for k in failed], -1.0)
            for k, measurement, step in zip(failed, repeated, downwards, strict=True):
                measurements[k], steps[k] = measurement, step
        return measurements, steps

    def _measure_steps(
        self, point: Vector, groups: Sequence[Sequence[int]], sign: float
    ) -> tuple[list[Measurement], list[dict[int, float]]]:
        points, steps = [], []
        for group in groups:
            moved = list(point)
            step = {}
            for position in group:
                k = self.free[position]
                high = self.problem.space.variables[k].high
                size = STEP * self.scales[position] * sign
                moved[k] = point[k] + (size if point[k] + size <= high else -size)
                step[position] = moved[k] - point[k]
            points.append(moved)
            steps.append(step)
        return self.problem.measure(points), steps

    def _model(
        self,
        measurement: Measurement,
        near: list[int],
        groups: list[list[int]],
        stepped: list[Measurement],
        steps: list[dict[int, float]],
    ) -> LinearModel:
        group_of = {position: k for k, group in enumerate(groups) for position in group}
        factor = [0.0] * len(self.free)
        for group, after, step in zip(groups, stepped, steps, strict=True):
            for position in group:
                if not after.error and step[position]:
                    factor[position] = self.scales[position] / step[position]
        rows = []
        for constraint in near:
            gap = measurement.slack[constraint]
            columns = self._columns[constraint]
            values = [
                (stepped[group_of[position]].slack[constraint] - gap) * factor[position] if factor[position] else 0.0
                for position in columns
            ]
            row = SparseRow(columns, tuple(values))
            self.largest_slope[constraint] = max(self.largest_slope[constraint], row.size())
            rows.append(row)
        return LinearModel(self._gradient_at(measurement, group_of, stepped, factor), rows, near)

    def _gradient_at(
        self, measurement: Measurement, group_of: dict[int, int], stepped: list[Measurement], factor: Vector
    ) -> Vector:
        if self._linear:
            return self._gradient
        cost = self.problem.cost
        gradient = [0.0] * len(self.free)
        for position in self._variables_of[OBJECTIVE]:
            if factor[position]:
                gradient[position] = (cost(stepped[group_of[position]]) - cost(measurement)) * factor[position]
        largest = max(map(abs, gradient), default=0.0)
        self._linear = all(abs(a - b) <= LINEAR * largest for a, b in zip(gradient, self._gradient, strict=True))
        self._gradient = gradient
        return gradient
