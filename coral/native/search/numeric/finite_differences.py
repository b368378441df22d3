"""Gradients by finite differences, with few measurements: variables that share no constraint are stepped together.

Which constraint depends on which variables is learned once, at a point chosen at random so that no derivative vanishes
by symmetry, and extended whenever a prediction fails. An objective that proves linear is not differenced again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from coral.native.search.numeric.problem import EvaluatedPoint, Measurement, OptimizationProblem
from coral.native.search.numeric.space import Vector, changed

STEP = 1e-7  # of a variable's scale: rounding and curvature then weigh about alike
LONGER_STEP = 1e-3  # tried once, where no step changes the score: it may be rounded to a few digits
MOSTLY = 0.5  # the share of the slopes that the longer step has to show
RANDOM_OFFSET = 1e-2  # of a variable's scale: away from symmetry, to learn what depends on what
SAFETY = 0.6  # the share of its largest slope by which a constraint can be expected to move
MARGIN = 1e-12  # of a constraint's slope: how far inside it a finished point stays
TOO_SMALL = 3.0  # times: a bound's scale that is less than this too small stays
LINEAR = 1e-5  # relative difference of two gradients of a linear objective

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Objective and nearby constraints linearised around a point, in units of the variables' scales."""

    gradient: Floats
    rows: Floats  # one for each nearby constraint
    constraints: Indices  # the number of the constraint that each row stands for


class FiniteDifferences:
    """Linearises one problem in its free variables, and learns more of its sparsity with every call.

    Inside, a variable is named by its position in `free`; row 0 is the objective, the rows after it the constraints.
    """

    def __init__(
        self, problem: OptimizationProblem, free: Sequence[int], scales: Sequence[float], random: Random
    ) -> None:
        self.problem, self.free, self.random = problem, list(free), random
        self.scales = np.array([scales[k] for k in free])
        variables = [problem.space.variables[k] for k in free]
        self.low = np.array([variable.low for variable in variables]) / self.scales
        self.high = np.array([variable.high for variable in variables]) / self.scales
        self._bound_is_scaled = False
        self._step = STEP
        self._may_lengthen = True
        self.outdated = True  # whether the dependencies have to be learned before the next model
        self._forget(0)

    def _forget(self, constraints: int) -> None:
        self.largest_slope = np.zeros(constraints)  # of each constraint, the largest seen so far
        self._depends = np.full((1 + constraints, len(self.free)), not constraints)
        self._gradient = np.zeros(len(self.free))  # of an objective that is linear so far
        self._elsewhere: Vector = []  # where that gradient was measured
        self._linear = False

    def position(self, point: Vector) -> Floats:
        """Return the free variables of a point, in units of their scales, as `low` and `high` are."""
        position: Floats = np.array([point[k] for k in self.free]) / self.scales
        return position

    def evaluate(self, origin: Vector, position: Floats) -> EvaluatedPoint:
        """Measure the point `origin` with its free variables at a position."""
        point = changed(origin, zip(self.free, (position * self.scales).tolist(), strict=True))
        return self.problem.evaluate(self.problem.space.clip(point))[0]

    def gaps(self, measurement: Measurement) -> Floats:
        """Return the slack of each constraint beyond the small margin that is kept."""
        gaps: Floats = np.asarray(measurement.slack) - MARGIN * self.largest_slope
        return gaps

    def model(self, point: Vector, measurement: Measurement, reach: float) -> LinearModel:
        """Return the model for steps of up to `reach` scales, with the constraints that such a step could break."""
        if len(measurement.slack) != len(self.largest_slope):
            self._forget(len(measurement.slack))
            self.outdated = True
        if self.outdated and len(measurement.slack):
            self._learn_dependencies(point, measurement)
        known = self._depends[1:].any(axis=1)
        largest_change = np.zeros_like(self.largest_slope)  # and not infinite times zero
        np.multiply(reach * SAFETY, self.largest_slope, out=largest_change, where=self.largest_slope > 0.0)
        near = np.flatnonzero(known & (np.asarray(measurement.slack) <= largest_change))
        rows = near + 1 if self._linear else np.concatenate(([0], near + 1))
        slopes = self._slopes(point, measurement, rows, self._groups(rows))
        if self._may_lengthen and not measurement.slack and not slopes.any():
            slopes = self._lengthen_steps(point, measurement, rows)
        if not self._linear:
            self._learn_gradient(point, slopes[0])
            slopes = slopes[1:]
        if near.size:
            self.largest_slope[near] = np.maximum(self.largest_slope[near], np.abs(slopes).sum(axis=1))
        return LinearModel(self._gradient, slopes, near)

    def _lengthen_steps(self, point: Vector, measurement: Measurement, rows: Indices) -> Floats:
        """Return the slopes by a longer step, which is kept if it shows any."""
        self._may_lengthen, self._step = False, LONGER_STEP
        slopes = self._slopes(point, measurement, rows, self._groups(rows))
        if np.count_nonzero(slopes) < MOSTLY * slopes.size:  # on a plateau, a few steps lead over its edge
            self._step = STEP
            return np.zeros_like(slopes)
        return slopes

    def _learn_gradient(self, point: Vector, gradient: Floats) -> None:
        """Keep the gradient; the objective counts as linear if it had the same gradient at another point."""
        close = np.abs(gradient - self._gradient).max(initial=0.0) <= LINEAR * np.abs(gradient).max(initial=0.0)
        self._linear = bool(close and len(self._depends) > 1 and self._elsewhere not in ([], point))
        self._gradient, self._elsewhere = gradient, list(point)

    def _learn_dependencies(self, point: Vector, measurement: Measurement) -> None:
        """Step each variable alone, at a point off any symmetry, and record which constraints changed."""
        origin = list(point)
        for k, scale in zip(self.free, self.scales.tolist(), strict=True):
            origin[k] += RANDOM_OFFSET * scale * self.random.uniform(-1, 1)
        origin = self.problem.space.clip(origin)
        base = self.problem.measure([origin])[0]
        if base.error or len(base.slack) != len(measurement.slack):
            origin, base = list(point), measurement
        known, self._depends = self._depends, np.ones_like(self._depends)
        everything = np.arange(len(self._depends))
        slopes = self._slopes(origin, base, everything, list(range(len(self.free))))
        self._widen_bound(slopes)
        self._depends = known | (slopes != 0.0)
        self._gradient, self._elsewhere, self._linear = slopes[0], origin, False
        self.largest_slope = np.maximum(self.largest_slope, np.abs(slopes[1:]).sum(axis=1))
        self.outdated = False

    def _widen_bound(self, slopes: Floats) -> None:
        """Rescale the variable that alone is the objective, if there is one: it is a bound on what the constraints
        hold, and its scale becomes how far a step of the other variables moves these. By its first value it may be too
        small, which would shorten every step. `slopes` change with it."""
        bound = np.flatnonzero(slopes[0])
        if self._bound_is_scaled or bound.size != 1:
            return
        k = int(bound[0])
        own = np.abs(slopes[1:, k])
        held = own > 0.0
        factor = float(np.median((np.abs(slopes[1:]).sum(axis=1) - own)[held] / own[held])) if held.any() else 0.0
        self._bound_is_scaled = True
        if factor > TOO_SMALL:
            self.scales[k] *= factor
            slopes[:, k] *= factor
            self.low[k] /= factor
            self.high[k] /= factor

    def _groups(self, rows: Indices) -> list[int]:
        """Return a group for each variable, so that no row depends on two of one group; -1 for those that no row needs.

        Sets of variables are the bits of integers, which makes thousands of comparisons cheap.
        """
        depends = self._depends[rows]
        sharing = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in depends]
        neighbours = [0] * len(self.free)
        for position, row in np.argwhere(depends.T).tolist():
            neighbours[position] |= sharing[row]
        groups, members = [-1] * len(self.free), list[int]()
        for position in np.argsort(-depends.sum(axis=0), kind="stable").tolist():
            if neighbours[position]:
                apart = (number for number, group in enumerate(members) if not group & neighbours[position])
                number = next(apart, len(members))
                if number == len(members):
                    members.append(0)
                members[number] |= 1 << position
                groups[position] = number
        return groups

    def _slopes(self, point: Vector, measurement: Measurement, rows: Indices, groups: Sequence[int]) -> Floats:
        """Return the derivatives of these rows; 0 where a row depends on no such variable or nothing could be measured.

        A step that cannot be measured upwards is tried downwards.
        """
        base = self._values(measurement, len(measurement.slack))
        group_of = np.array(groups)
        stepped = np.full((1 + max(0, *groups), len(base)), np.nan)
        steps = np.where(self.position(point) + self._step <= self.high, self._step, -self._step) * self.scales
        self._measure_steps(point, steps, group_of, stepped)
        failed = np.isnan(stepped[group_of, 0]) & (group_of >= 0)
        if failed.any():
            steps[failed] *= -1.0
            self._measure_steps(point, steps, np.where(failed, group_of, -1), stepped)
        slopes = (stepped[group_of][:, rows].T - base[rows, None]) * (self.scales / steps)
        return np.where(np.isfinite(slopes) & (group_of >= 0) & self._depends[rows], slopes, 0.0)

    def _measure_steps(self, point: Vector, steps: Floats, group_of: Indices, stepped: Floats) -> None:
        """Measure the steps of each group into `stepped`. Each of `steps` becomes what rounding leaves of it."""
        moved: dict[int, Vector] = {}
        for position in np.flatnonzero(group_of >= 0).tolist():
            k = self.free[position]
            after = moved.setdefault(int(group_of[position]), list(point))
            after[k] = point[k] + float(steps[position])
            steps[position] = (after[k] - point[k]) or np.nan
        for group, measured in zip(moved, self.problem.measure(list(moved.values())), strict=True):
            stepped[group] = self._values(measured, stepped.shape[1] - 1)

    def _values(self, measurement: Measurement, constraints: int) -> Floats:
        values = np.full(1 + constraints, np.nan)
        if not measurement.error and len(measurement.slack) == constraints:
            values[0] = self.problem.cost(measurement)
            values[1:] = measurement.slack
        return values
