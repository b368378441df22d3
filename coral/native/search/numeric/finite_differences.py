"""Slopes by finite differences, with few measurements: variables that no constraint of interest shares move together.

Which constraint depends on which variables is learned once, at a point chosen at random so that no slope vanishes by
symmetry, and extended whenever a prediction fails. An objective that proves linear is not differenced again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from coral.native.search.check import Outcome
from coral.native.search.numeric.problem import Problem
from coral.native.search.numeric.space import Vector
from coral.native.search.numeric.sparse import Row

NUDGE = 1e-7  # of a variable's scale: rounding and curvature then weigh about alike
SHAKE = 1e-2  # of a variable's scale: away from symmetry, to learn what depends on what
SAFETY = 0.6  # the share of its longest slope by which a constraint can be expected to move
LINEAR = 1e-5  # relative difference of two gradients of a linear objective
OBJECTIVE = -1  # its number among the constraints


@dataclass(frozen=True, slots=True)
class Slopes:
    """A linear model around a point, in units of the variables' scales."""

    gradient: Vector
    rows: list[Row]
    numbers: list[int]  # of the constraints that the rows stand for


class Differences:
    """Estimates slopes of one problem in its free variables; knows more after every estimate."""

    def __init__(self, problem: Problem, free: Sequence[int], scales: Sequence[float], random: Random) -> None:
        self.problem, self.free, self.random = problem, list(free), random
        self.scales = [scales[k] for k in free]
        self.depends: dict[int, set[int]] = {}  # constraint -> places in `free`
        self.columns: dict[int, tuple[int, ...]] = {}  # the same, in order
        self.size: dict[int, float] = {}  # constraint -> the longest slope seen
        self.gradient: Vector = []  # of an objective that is linear so far
        self.linear = False
        self.doubtful = True

    def distrust(self) -> None:
        """A prediction failed: learn again what depends on what."""
        self.doubtful = True

    def at(self, point: Vector, outcome: Outcome, reach: float) -> Slopes:
        """The model for steps of up to `reach` scales, with the constraints that such a step could break."""
        if self.doubtful:
            self._learn(point, outcome)
        near = [
            number
            for number, gap in enumerate(outcome.slack)
            if number in self.depends and gap <= reach * SAFETY * self.size[number]
        ]
        groups = self._groups(near if self.linear else [OBJECTIVE, *near])
        nudged, nudges = self._nudge(point, groups)
        return self._model(outcome, near, groups, nudged, nudges)

    def _learn(self, point: Vector, outcome: Outcome) -> None:
        """Move each variable alone, at a point off any symmetry; remember who answered."""
        shaken = list(point)
        for k, scale in zip(self.free, self.scales, strict=True):
            shaken[k] += SHAKE * scale * self.random.uniform(-1, 1)
        shaken = self.problem.space.clip(shaken)
        base = self.problem.measure([shaken])[0]
        if base.error or len(base.slack) != len(outcome.slack):
            shaken, base = list(point), outcome
        self.depends.setdefault(OBJECTIVE, set())
        self.gradient = []
        size: dict[int, float] = {}
        nudged, nudges = self._nudge(shaken, [[place] for place in range(len(self.free))])
        for place, (after, nudge) in enumerate(zip(nudged, nudges, strict=True)):
            slope = 0.0
            if not after.error and len(after.slack) == len(base.slack):
                slope = (self.problem.cost(after) - self.problem.cost(base)) / nudge[place] * self.scales[place]
                for number, (old, new) in enumerate(zip(base.slack, after.slack, strict=True)):
                    if new != old:
                        self.depends.setdefault(number, set()).add(place)
                        steep = abs(new - old) / abs(nudge[place]) * self.scales[place]
                        size[number] = size.get(number, 0.0) + steep
            if slope:
                self.depends[OBJECTIVE].add(place)
            self.gradient.append(slope)
        self.columns = {number: tuple(sorted(places)) for number, places in self.depends.items()}
        for number, length in size.items():
            self.size[number] = max(length, self.size.get(number, 0.0))
        self.linear = False  # until the gradient elsewhere proves to be the same
        self.doubtful = False

    def _groups(self, numbers: Sequence[int]) -> list[list[int]]:
        """Places that can move together because no constraint of `numbers` depends on two of one group."""
        meets: dict[int, list[int]] = {}
        for number in numbers:
            for place in self.depends[number]:
                meets.setdefault(place, []).append(number)
        groups: list[list[int]] = []
        taken: list[set[int]] = []
        for place in sorted(meets, key=lambda p: -len(meets[p])):
            for group, numbers_of in zip(groups, taken, strict=True):
                if numbers_of.isdisjoint(meets[place]):
                    group.append(place)
                    numbers_of.update(meets[place])
                    break
            else:
                groups.append([place])
                taken.append(set(meets[place]))
        return groups

    def _nudge(self, point: Vector, groups: Sequence[Sequence[int]]) -> tuple[list[Outcome], list[dict[int, float]]]:
        """Measure each group's nudge; one that cannot be measured upwards is tried downwards."""
        outcomes, nudges = self._measure_nudges(point, groups, 1.0)
        failed = [k for k, outcome in enumerate(outcomes) if outcome.error]
        if failed:
            again, back = self._measure_nudges(point, [groups[k] for k in failed], -1.0)
            for k, outcome, nudge in zip(failed, again, back, strict=True):
                outcomes[k], nudges[k] = outcome, nudge
        return outcomes, nudges

    def _measure_nudges(
        self, point: Vector, groups: Sequence[Sequence[int]], sign: float
    ) -> tuple[list[Outcome], list[dict[int, float]]]:
        points, nudges = [], []
        for group in groups:
            moved = list(point)
            nudge = {}
            for place in group:
                k = self.free[place]
                high = self.problem.space.spots[k].high
                size = NUDGE * self.scales[place] * sign
                moved[k] = point[k] + (size if point[k] + size <= high else -size)
                nudge[place] = moved[k] - point[k]
            points.append(moved)
            nudges.append(nudge)
        return self.problem.measure(points), nudges

    def _model(
        self,
        outcome: Outcome,
        near: list[int],
        groups: list[list[int]],
        nudged: list[Outcome],
        nudges: list[dict[int, float]],
    ) -> Slopes:
        moved_by = {place: k for k, group in enumerate(groups) for place in group}
        factor = [0.0] * len(self.free)
        for group, after, nudge in zip(groups, nudged, nudges, strict=True):
            for place in group:
                if not after.error and nudge[place]:
                    factor[place] = self.scales[place] / nudge[place]
        rows = []
        for number in near:
            old = outcome.slack[number]
            columns = self.columns[number]
            values = [
                (nudged[moved_by[place]].slack[number] - old) * factor[place] if factor[place] else 0.0
                for place in columns
            ]
            row = Row(columns, tuple(values))
            self.size[number] = max(self.size[number], row.size())
            rows.append(row)
        return Slopes(self._gradient(outcome, moved_by, nudged, factor), rows, near)

    def _gradient(self, outcome: Outcome, moved_by: dict[int, int], nudged: list[Outcome], factor: Vector) -> Vector:
        if self.linear:
            return self.gradient
        cost = self.problem.cost
        gradient = [0.0] * len(self.free)
        for place in self.depends[OBJECTIVE]:
            if factor[place]:
                gradient[place] = (cost(nudged[moved_by[place]]) - cost(outcome)) * factor[place]
        size = max(map(abs, gradient), default=0.0)
        self.linear = all(abs(a - b) <= LINEAR * size for a, b in zip(gradient, self.gradient, strict=True))
        self.gradient = gradient
        return gradient
