"""Searches near a point: reals along gradients where the check is fast enough, integers and choices by compass, in
turns."""

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from coral.native.search.numeric.compass import search_by_compass
from coral.native.search.numeric.moves import MoveContext
from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.public_check.candidate import Measurement
from coral.search_space.space import Vector

if TYPE_CHECKING:  # numpy and scipy take half a second: they are loaded by the first search that needs them
    from coral.native.search.numeric.finite_differences import FiniteDifferences

RECENT = 30  # how many of the last gains of local searches are taken into account
ENOUGH = 6  # gains that must be known before a local search is given up because of them
COARSE, ROUGH, FINE = 1e-4, 1e-6, 1e-12  # precision of a first look, while exploring, and of the candidate
WITHOUT_CONSTRAINTS = 1e-8  # while exploring: L-BFGS gains little in each of many steps
FEW = 0.34  # of the reals: so many are optimized alone before all of them
SMALL_RADIUS = 1e-3  # the first box when only the last digits are sought, in scales
AFFORDABLE = 4.0  # gradients that an episode must have time for, if gradients are to be used
WITH_CONSTRAINTS = 12.0  # the same where there are constraints, which take more steps, or a surrogate takes their place
MOST_BY_SURROGATE = 250  # reals; with more, a surrogate of what an episode can measure finds less than compass search
TURNS = 4


def are_gradients_affordable(problem: OptimizationProblem, start: Measurement, noisy: bool) -> bool:
    """Return whether an episode has time for several gradients by finite differences, each of which takes one
    measurement for each real variable; if the check is `noisy`, whether it has time for a surrogate."""
    gradients, reals = WITH_CONSTRAINTS if start.slack or noisy else AFFORDABLE, len(problem.space.reals)
    if noisy and reals > MOST_BY_SURROGATE:
        return False
    return problem.seconds_per_measurement * reals * gradients < problem.seconds


class LocalSearch:
    """Finds local optima near points. `differences`: None if gradients cannot be had: no variable is real, or the check
    is noisy, or too slow (`gradients` is false). `by_surrogate`: whether a surrogate takes their place because it is
    noisy; `centres`: the steps of these searches.

    Ranges and scales are taken from points: the start, those of other agents, and others that are known. Moves
    take them from declared bounds if `declared`; local searches never do, for their steps have to be small.
    """

    def __init__(
        self,
        problem: OptimizationProblem,
        start: Vector,
        others: Sequence[Vector],
        known: Sequence[Vector],
        random: Random,
        gradients: bool,
        declared: bool = False,
        *,
        noisy: bool = False,
    ) -> None:
        space, points = problem.space, [start, *others, *known]
        self.problem, self.random, self.scales = problem, random, space.scales(points)
        self.differences = self._differences_in(space.reals) if space.reals and gradients and not noisy else None
        self.by_surrogate = bool(space.reals) and gradients and noisy
        self.centres: list[EvaluatedPoint] = []
        ranges, wide = space.ranges(points, declared=declared), space.scales(points, declared=declared)
        self.context = MoveContext(problem, ranges, wide, others, random)
        self.gains: list[float] = []  # of the local searches, in merit

    @property
    def can_descend(self) -> bool:
        """Whether `descend` searches the reals; if not, compass search does."""
        return self.differences is not None or self.by_surrogate

    def settle(self, moved: EvaluatedPoint, before: Vector) -> EvaluatedPoint:
        """Optimize only the real variables that a move has changed, and return the point found. Their gradient costs
        few measurements. Return the point itself if gradients cannot be had, if the check rejects it or reports
        constraints, or if the move has changed no real variable, or many."""
        free = [k for k in self.problem.space.reals if moved.point[k] != before[k]]
        if self.differences is None or moved.measurement.error or moved.measurement.slack:
            return moved
        if not free or len(free) > FEW * len(self.problem.space.reals):
            return moved
        return self._descend(moved, self._differences_in(free), precision=COARSE)

    def optimize(self, start: EvaluatedPoint, target: float | None) -> EvaluatedPoint:
        """Return the local optimum near a point. The search ends early when it is unlikely to find a merit below
        `target`."""
        merit = self.problem.merit
        if start.measurement.error or self._is_hopeless(merit(start.measurement), target):
            return start
        current, space = start, self.problem.space
        discrete = space.discrete if self.can_descend else range(len(space))
        for _ in range(TURNS):
            before = current
            current = self.descend(current, target)
            if not discrete or (target is not None and self.problem.merit(current.measurement) > target):
                break
            current = self.compass(current, discrete)
            if current is before or not self.can_descend:
                break
        self.gains.append(merit(start.measurement) - merit(current.measurement))
        return current

    def _is_hopeless(self, merit: float, target: float | None) -> bool:
        """Return whether a local search from this merit is unlikely to reach `target`: it would have to gain more than
        twice as much as four in five of the recent searches. With fewer than ENOUGH of them, return False."""
        recent = sorted(self.gains[-RECENT:])
        return target is not None and len(recent) >= ENOUGH and merit - 2 * recent[int(0.8 * len(recent))] > target

    def descend(self, start: EvaluatedPoint, target: float | None = None) -> EvaluatedPoint:
        """Return the local optimum in the reals near a point."""
        if self.by_surrogate and not start.measurement.error:
            from coral.native.search.numeric.surrogate import SurrogateSearch

            reals, keep = self.problem.space.reals, self.centres.append
            return SurrogateSearch(self.problem, start, reals, self.scales, keep).run(self.random)
        precision = ROUGH if start.measurement.slack else WITHOUT_CONSTRAINTS
        return self._descend(start, self.differences, precision=precision, target=target)

    def polish(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """Search for the last digits, strictly within the constraints."""
        return self._descend(evaluated, self.differences, precision=FINE, radius=SMALL_RADIUS)

    def _descend(self, start: EvaluatedPoint, differences: "FiniteDifferences | None", **goal: Any) -> EvaluatedPoint:
        """Return the end of a descent from a point; the point itself if gradients cannot be had, or the check rejects
        it. `goal`: the fields of `Descent` that say when it stops and how far its first step may lead."""
        if differences is None or start.measurement.error:
            return start
        from coral.native.search.numeric.descent import Descent

        return Descent(self.problem, differences, **goal).run(start)

    def _differences_in(self, indices: Sequence[int]) -> "FiniteDifferences":
        from coral.native.search.numeric.finite_differences import FiniteDifferences

        return FiniteDifferences(self.problem, indices, self.scales, self.random)

    def compass(self, start: EvaluatedPoint, indices: Sequence[int]) -> EvaluatedPoint:
        return search_by_compass(self.problem, start, indices, self.scales, self.random)
