"""The local searches of one episode, over everything that a problem's variables may be.

Reals go down by slopes where the check is fast enough for slopes, integers and choices by the compass, by turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from coral.native.search.numeric.compass import Compass
from coral.native.search.numeric.descent import Descent, Goal
from coral.native.search.numeric.evolution import Evolution
from coral.native.search.numeric.finite_differences import Differences
from coral.native.search.numeric.moves import View
from coral.native.search.numeric.problem import Place, Problem
from coral.native.search.numeric.space import Vector

PRICE = 3.0  # of a violation, in costs; what moves compare candidates with
ROUGH, FINE = 1e-6, 1e-12  # precision while exploring, and of what is handed in
NEAR = 1e-3  # the first box when only the last digits are sought, in scales
AFFORDABLE = 12.0  # gradients that an episode must have time for, if slopes are to be used
TURNS = 4


@dataclass(frozen=True, slots=True)
class Ground:
    """`differences` is None where slopes are out of reach: nothing real, or a check that is too slow."""

    problem: Problem
    view: View
    differences: Differences | None
    random: Random

    @classmethod
    def of(
        cls,
        problem: Problem,
        here: Vector,
        others: Sequence[Vector],
        seen: Sequence[Vector],
        random: Random,
        seconds: float,
    ) -> Ground:
        """Ranges and scales come from the points that are known: from here, from other agents, from the beginning."""
        space = problem.space
        scales = space.scales([here, *others, *seen])
        ranges = [(0.0, 0.0)] * len(space)
        for column in space.columns:
            for variable in column.members:
                ranges[variable] = column.range([here, *others, *seen])
        affordable = problem.pace * len(space.reals) * AFFORDABLE < seconds
        differences = Differences(problem, space.reals, scales, random) if space.reals and affordable else None
        return cls(problem, View(problem, ranges, scales, others, random, PRICE), differences, random)

    def settle(self, place: Place, beat: float | None) -> Place:
        """The local optimum near a place; given up when no hope is left of a cost below `beat`."""
        if place.outcome.error:
            return place
        here = place
        discrete = self.problem.space.others if self.differences is not None else range(len(self.problem.space))
        for _ in range(TURNS):
            before = here
            if self.differences is not None:
                here = Descent(self.problem, self.differences, Goal(precision=ROUGH, beat=beat)).run(here)
            if not discrete or (beat is not None and self.merit(here) > beat):
                break
            here = self.compass(here, discrete)
            if here is before or self.differences is None:
                break
        return here

    def finish(self, place: Place) -> Place:
        """The last digits, strictly within the constraints."""
        if self.differences is None or place.outcome.error or not place.outcome.slack:
            return place
        return Descent(self.problem, self.differences, Goal(precision=FINE, radius=NEAR)).run(place)

    def compass(self, here: Place, variables: Sequence[int]) -> Place:
        return Compass(self.problem, variables, self.view.scales, self.random, PRICE).run(here)

    def evolution(self, here: Place) -> Place:
        reals_and_integers = [k for k, spot in enumerate(self.problem.space.spots) if not spot.words]
        return Evolution(self.problem, reals_and_integers, self.view.scales, self.random, PRICE).run(here)

    def merit(self, place: Place) -> float:
        return self.problem.merit(place.outcome, PRICE)
