"""Compass search: one variable at a time, both ways, with a step of its own that grows on success and shrinks on none.

It asks nothing of the problem - no gradient, no continuity - and it is what integers and choices are searched by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.space import Vector
from coral.native.search.numeric.variables import VariableKind

FIRST_STEP, LAST_STEP = 0.25, 1e-7  # of a real, in scales
GROW, SHRINK = 2.0, 0.4
MOST_SWEEPS = 200


@dataclass(slots=True)
class CompassSearch:
    problem: OptimizationProblem
    indices: Sequence[int]  # of the variables that it may change
    scales: Sequence[float]
    random: Random
    penalty: float
    steps: dict[int, float] = field(default_factory=dict)

    def run(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """Sweep until no step of any variable gains; a problem of choices alone ends after one fruitless sweep."""
        current = start
        self.steps = {k: self._first_step(k) for k in self.indices}
        for _ in range(MOST_SWEEPS):
            before = current
            for k in self.random.sample(list(self.indices), len(self.indices)):
                current = self._probe(current, k)
            if current is before and all(self._has_finest_step(k) for k in self.indices):
                break
        return current

    def _first_step(self, k: int) -> float:
        size = FIRST_STEP * self.scales[k]
        return size if self._kind(k) is VariableKind.REAL else max(1.0, float(round(size)))

    def _has_finest_step(self, k: int) -> bool:
        limit = LAST_STEP * self.scales[k] if self._kind(k) is VariableKind.REAL else 1.0
        return self._kind(k) is VariableKind.CHOICE or self.steps[k] <= limit

    def _probe(self, current: EvaluatedPoint, k: int) -> EvaluatedPoint:
        """Try both directions (or all other choices); take the better one if it is better than the current point."""
        step = self.steps[k]
        tried = self.problem.evaluate(*self._neighbours(current.point, k, step))
        best = min(tried, key=self._merit, default=current)
        if self._merit(best) < self._merit(current):
            self.steps[k] = step * GROW
            return best
        if self._kind(k) is VariableKind.REAL:
            self.steps[k] = max(step * SHRINK, 0.5 * LAST_STEP * self.scales[k])
        else:
            self.steps[k] = max(1.0, float(int(step * SHRINK)))
        return current

    def _neighbours(self, point: Vector, k: int, step: float) -> list[Vector]:
        values = [point[k] - step, point[k] + step]
        if self._kind(k) is VariableKind.CHOICE:
            values = [float(index) for index in range(len(self.problem.space.variables[k].choices))]
        out = []
        for value in values:
            moved = list(point)
            moved[k] = value
            moved = self.problem.space.clip(moved)
            if moved[k] != point[k]:
                out.append(moved)
        return out

    def _kind(self, k: int) -> VariableKind:
        return self.problem.space.variables[k].kind

    def _merit(self, evaluated: EvaluatedPoint) -> float:
        return self.problem.merit(evaluated.measurement, self.penalty)
