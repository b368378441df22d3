"""The local searches of one episode, over everything that a problem's variables may be.

Reals descend along gradients where the check is fast enough for them, integers and choices by compass search, by turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from coral.native.search.numeric.compass import search_by_compass
from coral.native.search.numeric.descent import Descent, Goal
from coral.native.search.numeric.evolution import evolve
from coral.native.search.numeric.finite_differences import FiniteDifferences
from coral.native.search.numeric.moves import MoveContext
from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.space import Vector

ROUGH, FINE = 1e-6, 1e-12  # precision while exploring, and of what is submitted
SMALL_RADIUS = 1e-3  # the first box when only the last digits are sought, in scales
AFFORDABLE = 12.0  # gradients that an episode must have time for, if gradients are to be used
TURNS = 4


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """`differences` is None where gradients are out of reach: nothing real, or a check that is too slow."""

    problem: OptimizationProblem
    context: MoveContext
    differences: FiniteDifferences | None
    random: Random

    @classmethod
    def of(
        cls,
        problem: OptimizationProblem,
        current: Vector,
        others: Sequence[Vector],
        known: Sequence[Vector],
        random: Random,
        seconds: float,
    ) -> "LocalSearch":
        """Ranges and scales come from points: the current one, those of other agents, and others that are known."""
        space, points = problem.space, [current, *others, *known]
        scales = space.scales(points)
        affordable = problem.seconds_per_measurement * len(space.reals) * AFFORDABLE < seconds
        differences = FiniteDifferences(problem, space.reals, scales, random) if space.reals and affordable else None
        context = MoveContext(problem, space.ranges(points), scales, others, random)
        return cls(problem, context, differences, random)

    def optimize(self, start: EvaluatedPoint, target: float | None) -> EvaluatedPoint:
        """The local optimum near a point; given up when there is no hope of a merit below `target`."""
        if start.measurement.error:
            return start
        current = start
        space = self.problem.space
        discrete = space.discrete if self.differences is not None else range(len(space))
        for _ in range(TURNS):
            before = current
            if self.differences is not None:
                current = Descent(self.problem, self.differences, Goal(precision=ROUGH, target=target)).run(current)
            if not discrete or (target is not None and self.problem.merit(current.measurement) > target):
                break
            current = self.compass(current, discrete)
            if current is before or self.differences is None:
                break
        return current

    def polish(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """The last digits, strictly within the constraints."""
        if self.differences is None or evaluated.measurement.error or not evaluated.measurement.slack:
            return evaluated
        return Descent(self.problem, self.differences, Goal(precision=FINE, radius=SMALL_RADIUS)).run(evaluated)

    def compass(self, start: EvaluatedPoint, indices: Sequence[int]) -> EvaluatedPoint:
        return search_by_compass(self.problem, start, indices, self.context.scales, self.random)

    def evolution(self, start: EvaluatedPoint) -> EvaluatedPoint:
        numbers = [k for k, variable in enumerate(self.problem.space.variables) if not variable.choices]
        return evolve(self.problem, start, numbers, self.context.scales, self.random)
