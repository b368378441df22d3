"""Gradients by finite differences, with few measurements: variables that share no constraint are stepped together.

Which constraint depends on which variables is learned once, at a point chosen at random so that no derivative vanishes
by symmetry, and extended whenever a prediction fails. An objective that proves linear is not differenced again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.public_check.candidate import Measurement
from coral.search_space.space import Vector, changed

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
        self.bounds = np.array([(variable.low, variable.high) for variable in variables]) / self.scales[:, None]
        self._bound_is_scaled = False
        self._step = STEP
        self._may_lengthen = True
        self._forget(0)

    def _forget(self, constraints: int) -> None:
        self.outdated = True  # whether the dependencies have to be learned before the next model
        self.largest_slope = np.zeros(constraints)  # of each constraint, the largest seen so far
        self._depends = np.full((1 + constraints, len(self.free)), not constraints)
        self._gradient = np.zeros(len(self.free))  # of an objective that is linear so far
        self._elsewhere: Vector = []  # where that gradient was measured
        self._linear = False

    def position(self, point: Vector) -> Floats:
        """Return the values of a point's free variables, each divided by its scale; `bounds` is in these units, too."""
        position: Floats = np.array([point[k] for k in self.free]) / self.scales
        return position

    def evaluate(self, origin: Vector, position: Floats) -> EvaluatedPoint:
        """Measure the point `origin` with its free variables at a position."""
        point = changed(origin, zip(self.free, (position * self.scales).tolist(), strict=True))
        return self.problem.evaluate(self.problem.space.clip(point))[0]

    def gaps(self, measurement: Measurement) -> Floats:
        """Return the slack of each constraint beyond the small margin that is kept."""
        return np.array(measurement.slack, dtype=float) - MARGIN * self.largest_slope

    def model(self, at: EvaluatedPoint, reach: float) -> LinearModel:
        """Return the model for steps of up to `reach` scales, with the constraints that such a step could break."""
        slack = np.asarray(at.measurement.slack)
        if len(slack) != len(self.largest_slope):
            self._forget(len(slack))
        if self.outdated and slack.size:
            self._learn_dependencies(at)
        is_near = slack <= reach * SAFETY * self.largest_slope
        near = np.flatnonzero(is_near & (self.largest_slope > 0.0))
        rows = near + 1 if self._linear else np.append(0, near + 1)
        slopes = self._slopes(at, rows)
        if self._may_lengthen and not slack.size and not slopes.any():
            slopes = self._lengthen_steps(at, rows)
        if not self._linear:
            self._learn_gradient(at.point, slopes[0])
            slopes = slopes[1:]
        self.largest_slope[near] = np.maximum(self.largest_slope[near], np.abs(slopes).sum(axis=1))
        return LinearModel(self._gradient, slopes, near)

    def _lengthen_steps(self, at: EvaluatedPoint, rows: Indices) -> Floats:
        """Return the slopes by a longer step, which is kept if it shows any."""
        self._may_lengthen, self._step = False, LONGER_STEP
        slopes = self._slopes(at, rows)
        if np.count_nonzero(slopes) < MOSTLY * slopes.size:  # on a plateau, a few steps lead over its edge
            self._step = STEP
            return np.zeros_like(slopes)
        return slopes

    def _learn_gradient(self, point: Vector, gradient: Floats) -> None:
        """Keep the gradient; the objective counts as linear if it had the same gradient at another point."""
        close = np.abs(gradient - self._gradient).max(initial=0.0) <= LINEAR * np.abs(gradient).max(initial=0.0)
        self._linear = bool(close and len(self._depends) > 1 and self._elsewhere not in ([], point))
        self._gradient, self._elsewhere = gradient, point

    def _learn_dependencies(self, at: EvaluatedPoint) -> None:
        """Step each variable alone, at a point off any symmetry, and record which constraints changed."""
        origin = list(at.point)
        for k, scale in zip(self.free, self.scales.tolist(), strict=True):
            origin[k] += RANDOM_OFFSET * scale * self.random.uniform(-1, 1)
        beside = self.problem.measured(self.problem.space.clip(origin))
        if beside.measurement.error or len(beside.measurement.slack) != len(at.measurement.slack):
            beside = at
        known, self._depends = self._depends, np.ones_like(self._depends)
        slopes = self._slopes(beside, np.arange(len(self._depends)))
        self._widen_bound(slopes)
        self._depends = known | (slopes != 0.0)
        self._gradient, self._elsewhere, self._linear = slopes[0], beside.point, False
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
            self.bounds[k] /= factor

    def _groups(self, depends: NDArray[np.bool_]) -> list[list[int]]:
        """Return groups of variables, so that no row depends on two of one group, without those that no row needs."""
        if depends.all(axis=1).any():
            return [[position] for position in range(len(self.free))]
        groups: list[list[int]] = [[] for _ in self.free]
        taken = np.zeros(depends.T.shape, dtype=bool)  # by each group: the rows that depend on one of it
        for position in np.argsort(-depends.sum(axis=0), kind="stable").tolist():
            rows = np.flatnonzero(depends[:, position])
            if rows.size:
                first = int(taken[:, rows].any(axis=1).argmin())
                taken[first, rows] = True
                groups[first].append(position)
        return [group for group in groups if group]

    def _slopes(self, at: EvaluatedPoint, rows: Indices) -> Floats:
        """Return the derivatives of these rows; 0 where a row depends on no such variable or nothing could be measured.

        A step that cannot be measured upwards is tried downwards.
        """
        depends, base = self._depends[rows], self._values(at.measurement)[rows]
        slopes = np.zeros(depends.shape)
        here = np.array([at.point[k] for k in self.free])
        steps = (
            np.where(self.position(at.point) + self._step <= self.bounds[:, 1], self._step, -self._step) * self.scales
        )
        groups = self._groups(depends)
        for way in (steps, -steps):
            there, failed = here + way, []
            lengths = np.where(there == here, np.nan, there - here)  # what rounding leaves of the steps
            moved = [changed(at.point, [(self.free[n], float(there[n])) for n in group]) for group in groups]
            for group, measured in zip(groups, self.problem.measure(moved), strict=True):
                if measured.error or len(measured.slack) != len(at.measurement.slack):
                    failed.append(group)
                else:
                    differences = self._values(measured)[rows] - base
                    slopes[:, group] = np.outer(differences, self.scales[group] / lengths[group])
            groups = failed
        return np.where(depends & np.isfinite(slopes), slopes, 0.0)

    def _values(self, measurement: Measurement) -> Floats:
        return np.array([self.problem.cost(measurement), *measurement.slack])
