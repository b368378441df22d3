"""Compass search: one variable at a time, both ways, with a step of its own that grows on success and shrinks on none.

It asks nothing of the problem - no slopes, no continuity - and it is what integers and choices are searched by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from coral.native.search.numeric.problem import Place, Problem
from coral.native.search.numeric.space import Vector
from coral.native.search.numeric.variables import Kind

FIRST, LAST = 0.25, 1e-7  # step of a real, in scales
GROW, SHRINK = 2.0, 0.4
MOST_SWEEPS = 200


@dataclass(slots=True)
class Compass:
    problem: Problem
    variables: Sequence[int]
    scales: Sequence[float]
    random: Random
    penalty: float
    steps: dict[int, float] = field(default_factory=dict)

    def run(self, start: Place) -> Place:
        """Sweep until no step of any variable gains; a problem of choices alone ends after one fruitless sweep."""
        here = start
        self.steps = {k: self._first(k) for k in self.variables}
        for _ in range(MOST_SWEEPS):
            before = here
            for variable in self.random.sample(list(self.variables), len(self.variables)):
                here = self._probe(here, variable)
            if here is before and all(self._finest(k) for k in self.variables):
                break
        return here

    def _first(self, variable: int) -> float:
        spot = self.problem.space.spots[variable]
        size = FIRST * self.scales[variable]
        return size if spot.kind is Kind.REAL else max(1.0, float(round(size)))

    def _finest(self, variable: int) -> bool:
        spot = self.problem.space.spots[variable]
        limit = LAST * self.scales[variable] if spot.kind is Kind.REAL else 1.0
        return spot.kind is Kind.CHOICE or self.steps[variable] <= limit

    def _probe(self, here: Place, variable: int) -> Place:
        """Try both directions (or all other words); take the better one if it is better than here."""
        step = self.steps[variable]
        tried = self.problem.visit(*self._neighbours(here.point, variable, step))
        best = min(tried, key=self._merit, default=here)
        if self._merit(best) < self._merit(here):
            self.steps[variable] = step * GROW
            return best
        if self.problem.space.spots[variable].kind is Kind.REAL:
            self.steps[variable] = max(step * SHRINK, 0.5 * LAST * self.scales[variable])
        else:
            self.steps[variable] = max(1.0, float(int(step * SHRINK)))
        return here

    def _neighbours(self, point: Vector, variable: int, step: float) -> list[Vector]:
        spot = self.problem.space.spots[variable]
        values = [point[variable] - step, point[variable] + step]
        if spot.kind is Kind.CHOICE:
            values = [float(k) for k in range(len(spot.words))]
        out = []
        for value in values:
            moved = list(point)
            moved[variable] = value
            moved = self.problem.space.clip(moved)
            if moved[variable] != point[variable]:
                out.append(moved)
        return out

    def _merit(self, place: Place) -> float:
        return self.problem.merit(place.outcome, self.penalty)
