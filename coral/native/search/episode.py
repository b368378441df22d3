"""Runs one episode of search: from a start, with one family, for a few seconds; returns the best candidate found.

An episode always ends with a candidate. If it found nothing better, that is the best of those that differ from the
start, because only an attempt that fails to improve shows stagnation.

Its local searches cover every kind of variable, in turns: reals descend along gradients where the check is fast enough
for that, integers and choices are searched by compass.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from coral.native.search.families import FAMILIES, LOCAL, SCATTER, Family, hops
from coral.native.search.numeric.compass import search_by_compass
from coral.native.search.numeric.discrete import anneal, draw_anew, search_by_tabu
from coral.native.search.numeric.moves import MoveContext, perturb_all, restart
from coral.native.search.numeric.problem import SAME, EvaluatedPoint, Measurement, OptimizationProblem, TimeUp
from coral.native.search.numeric.space import SearchSpace, Vector

if TYPE_CHECKING:  # numpy and scipy take half a second: each is loaded by the first search that needs it
    from coral.native.search.numeric.evolution import Evolution
    from coral.native.search.numeric.finite_differences import FiniteDifferences

ALIKE = 3e-6  # relative: costs closer than this are one result before the last digits are sought
POLISH = 0.2  # of the episode's time, or this many seconds, for the last digits
TOLERANCE = 0.8  # of the usual loss: how much worse the next point of departure may be
RECENT = 30  # how many of the last losses, and of the last gains of local searches, are taken into account
ENOUGH = 6  # gains that must be known before a local search is given up because of them
PATIENCE = 25  # moves without a new best after which the search returns to the best
COARSE, ROUGH, FINE = 1e-4, 1e-6, 1e-12  # precision of a first look, while exploring, and of the candidate
WITHOUT_CONSTRAINTS = 1e-8  # while exploring: L-BFGS gains little in each of many steps
FEW = 0.34  # of the reals: so many are optimized alone before all of them
SMALL_RADIUS = 1e-3  # the first box when only the last digits are sought, in scales
AFFORDABLE = 4.0  # gradients that an episode must have time for, if gradients are to be used
WITH_CONSTRAINTS = 12.0  # the same where there are constraints, which take more steps
QUICK = 5e-4  # seconds of a measurement: a check that takes longer is timed for longer
TIMING = 0.02  # of the episode's time, for that
TURNS = 4
LINE_PATIENCE = 12  # moves that gain nothing, after which a line that began anywhere is given up
DESCENT_STEPS = 250  # gradients of a long descent without constraints
LONGER = 2.4  # times the episode's seconds, at most, where such a descent takes longer than these
LATER_RUN = 4  # restarts that an evolution with large populations leaves out after its first run
NEAR = 0.5  # how often a small run of an evolution begins at the best, and not at a random point
SHARES_ANEW = (0.1, 0.3, 1.0)  # of the integers, choices and orders, between two walks of a discrete search


def are_gradients_affordable(problem: OptimizationProblem, start: Measurement) -> bool:
    """Return whether an episode has time for several gradients by finite differences. Each takes one measurement for
    each real variable."""
    gradients = WITH_CONSTRAINTS if start.slack else AFFORDABLE
    return problem.seconds_per_measurement * len(problem.space.reals) * gradients < problem.seconds


def _differences(
    problem: OptimizationProblem, indices: Sequence[int], scales: Sequence[float], random: Random
) -> "FiniteDifferences":
    from coral.native.search.numeric.finite_differences import FiniteDifferences

    return FiniteDifferences(problem, indices, scales, random)


def _descend(
    start: EvaluatedPoint, problem: OptimizationProblem, differences: "FiniteDifferences", **goal: Any
) -> EvaluatedPoint:
    """`goal`: the fields of `descent.Goal`."""
    from coral.native.search.numeric.descent import Descent, Goal

    return Descent(problem, differences, Goal(**goal)).run(start)


class LocalSearch:
    """Searches near a point. `differences`: None if gradients cannot be had: no variable is real, or the check is too
    slow (`gradients` is false).

    Ranges and scales are taken from points: the current one, those of other agents, and others that are known.
    """

    def __init__(
        self,
        problem: OptimizationProblem,
        current: Vector,
        others: Sequence[Vector],
        known: Sequence[Vector],
        random: Random,
        gradients: bool,
    ) -> None:
        space, points = problem.space, [current, *others, *known]
        scales = space.scales(points)
        differences = _differences(problem, space.reals, scales, random) if space.reals and gradients else None
        self.problem, self.differences, self.random, self.scales = problem, differences, random, scales
        self.context = MoveContext(problem, space.ranges(points), scales, others, random)
        self.gains: list[float] = []  # of the local searches, in merit

    def settle(self, moved: EvaluatedPoint, before: Vector) -> EvaluatedPoint:
        """Optimize only the real variables that a move has changed, and return the point found. Their gradient costs
        few measurements. Return the point itself if gradients cannot be had, if the check rejects it or reports
        constraints, or if the move has changed no real variable, or many."""
        free = [k for k in self.problem.space.reals if moved.point[k] != before[k]]
        if self.differences is None or moved.measurement.error or moved.measurement.slack:
            return moved
        if not free or len(free) > FEW * len(self.problem.space.reals):
            return moved
        differences = _differences(self.problem, free, self.scales, self.random)
        return _descend(moved, self.problem, differences, precision=COARSE)

    def optimize(self, start: EvaluatedPoint, target: float | None) -> EvaluatedPoint:
        """Return the local optimum near a point. The search ends early when it is unlikely to find a merit below
        `target`."""
        merit = self.problem.merit
        if start.measurement.error or self._is_hopeless(merit(start.measurement), target):
            return start
        current = start
        space = self.problem.space
        discrete = space.discrete if self.differences is not None else range(len(space))
        for _ in range(TURNS):
            before = current
            current = self._explore(current, target)
            if not discrete or (target is not None and self.problem.merit(current.measurement) > target):
                break
            current = self.compass(current, discrete)
            if current is before or self.differences is None:
                break
        self.gains.append(merit(start.measurement) - merit(current.measurement))
        return current

    def _is_hopeless(self, merit: float, target: float | None) -> bool:
        """Return whether a local search from this merit is unlikely to reach `target`: it would have to gain more than
        twice as much as four in five of the recent searches. With fewer than ENOUGH of them, return False."""
        recent = sorted(self.gains[-RECENT:])
        return target is not None and len(recent) >= ENOUGH and merit - 2 * recent[int(0.8 * len(recent))] > target

    def descend(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """Return the local optimum in the reals near a point; the point itself where gradients cannot be had."""
        return start if start.measurement.error else self._explore(start)

    def _explore(self, start: EvaluatedPoint, target: float | None = None) -> EvaluatedPoint:
        """Descend in all reals; return the point itself where gradients cannot be had."""
        if self.differences is None:
            return start
        precision = ROUGH if start.measurement.slack else WITHOUT_CONSTRAINTS
        return _descend(start, self.problem, self.differences, precision=precision, target=target)

    def polish(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """Search for the last digits, strictly within the constraints."""
        if self.differences is None or evaluated.measurement.error:
            return evaluated
        return _descend(evaluated, self.problem, self.differences, precision=FINE, radius=SMALL_RADIUS)

    def compass(self, start: EvaluatedPoint, indices: Sequence[int]) -> EvaluatedPoint:
        return search_by_compass(self.problem, start, indices, self.context.scales, self.random)


def evolvable(space: SearchSpace) -> list[int]:
    return [k for k, variable in enumerate(space.variables) if not variable.choices and not variable.permutation]


@dataclass(slots=True)
class Episode:
    """One episode. `start`: the point that results are compared with; `chain`: where the last episode ended, often the
    same point. The next episode of the family goes on from `current`, and from the `evolution` as it is then."""

    problem: OptimizationProblem
    _: KW_ONLY
    family: str
    chain: Vector
    others: Sequence[Vector]
    known: Sequence[Vector] = ()  # further points that show what values are usual
    seconds: float
    random: Random
    report: Callable[[str, float], None]
    pause: Callable[[], float]  # returns the seconds between two reports
    evolution: "Evolution | None" = None  # as an earlier episode left it
    large_populations: bool = False  # whether an evolution goes on with them after its first run
    moves: int = 0
    losses: list[float] = field(default_factory=list)  # of each local optimum against the best
    optima: list[EvaluatedPoint] = field(default_factory=list)
    began: float = field(default_factory=lambda: time.monotonic())
    reported_at: float = 0.0
    moves_since_best: int = 0
    line: EvaluatedPoint | None = None  # the best of a line that began anywhere
    line_moves: int = 0  # since it gained last
    start: EvaluatedPoint = field(init=False)
    current: EvaluatedPoint = field(init=False)
    best: EvaluatedPoint = field(init=False)
    local: LocalSearch = field(init=False)

    def run(self) -> EvaluatedPoint:
        """Run the episode and return the point to submit. Raises only what a check that cannot be used at all
        raises."""
        problem = self.problem
        problem.seconds = self.seconds
        problem.deadline = self.began + self.seconds * 60  # the start is measured, however slow the check is
        self.start = self.current = self.best = problem.measured(problem.space.start)
        self._learn_pace()
        gradients = are_gradients_affordable(problem, self.start.measurement)
        if gradients:
            self._take_time_for_descent()
        self.local = LocalSearch(problem, self.chain, self.others, self.known, self.random, gradients)
        problem.best = None
        if self.chain != self.start.point:
            self.current = problem.measured(self.chain)
            self.line = self.current if self.family == SCATTER else None
        # Last digits are sought of what is better, in the reals: where there is none, the time is the search's.
        for share in (1.0 - POLISH, 1.0) if self.local.differences is not None else (1.0,):
            problem.deadline = self.began + self.seconds * share
            with suppress(TimeUp):
                self._search()
            if problem.best is not None and problem.rank(problem.best) < problem.rank(self.best):
                self.best = self.current = problem.best  # the time was over in the middle of a move
            if self._has_gained(ALIKE):
                break
        return self._candidate()

    def _search(self) -> None:
        while True:
            if self.family == SCATTER:
                self._move_in_line()
            else:
                self._move(FAMILIES[self.family])
            self.moves += 1
            self._report()

    def _learn_pace(self) -> None:
        """Measure the start again for a moment if the check seems slow: one measurement may have waited for another
        process."""
        until = self.began + TIMING * self.seconds
        while self.problem.seconds_per_measurement > QUICK and time.monotonic() < until:
            self.problem.measured(self.start.point)

    def _take_time_for_descent(self) -> None:
        """Make a local episode longer where a descent takes longer: what is cut off costs another launch."""
        if FAMILIES[self.family].kind == LOCAL and not self.start.measurement.slack:
            descent = DESCENT_STEPS * (len(self.problem.space.reals) + 1) * self.problem.seconds_per_measurement
            self.seconds = min(max(self.seconds, descent), LONGER * self.seconds)
            self.problem.seconds = self.seconds

    def _move_in_line(self) -> None:
        """Go on with a line of optima, each near the last one; begin one at a random point where there is none, or the
        last moves have gained nothing. Whether the line is better than the best so far is of no account to it."""
        if self.line is None or self.line_moves >= LINE_PATIENCE:
            self.line, self.line_moves = self._begin_line(), 0
        else:
            optimum = self._hop_from(self.line)
            better = min(self.line, optimum, key=self.problem.rank)
            self.line_moves = 0 if self._gain(self.line, better) > ALIKE else self.line_moves + 1
            self.line = better
        self.current = self.line
        self.optima.append(self.line)
        self.best = min(self.best, self.line, key=self.problem.rank)

    def _begin_line(self) -> EvaluatedPoint:
        """Return the optimum near a random point. Where the time is over before, the next episode goes on from what was
        found."""
        problem, kept = self.problem, self.problem.best
        problem.best = None
        try:
            point = restart(self.local.context, self.current.point)
            return self.local.optimize(problem.evaluate(point)[0], target=None)
        finally:
            self.current = problem.best or self.current
            problem.best = min((one for one in (kept, problem.best) if one), key=problem.rank, default=None)

    def _hop_from(self, optimum: EvaluatedPoint) -> EvaluatedPoint:
        """Return an optimum near this one."""
        local, near = self.local, hops(self.problem.space)
        family = self.random.choices(near, weights=[family.prior for family in near])[0]
        assert family.move is not None, "a hop is a move"
        point = self.problem.space.clip(family.move(local.context, optimum.point))
        moved = local.settle(self.problem.measured(point), optimum.point)
        return local.optimize(moved, target=self.problem.merit(optimum.measurement))

    def _move(self, family: Family) -> None:
        """Make one move, then search locally. The next move starts at the result, even if it is a little worse."""
        local, merit, allowance = self.local, self.problem.merit, self._allowance()
        if family.move is not None:
            point = self.problem.space.clip(family.move(local.context, self.current.point))
            moved = local.settle(self.problem.measured(point), self.current.point)
            optimum = local.optimize(moved, target=merit(self.current.measurement) + allowance)
        else:
            optimum = self._search_locally(family.name)
        if not optimum.measurement.feasible and self.best.measurement.feasible:
            return
        self.optima.append(optimum)
        if abs(self._gain(self.current, optimum)) > ALIKE:  # else it fell back to where it had left
            self.losses.append(max(0.0, merit(optimum.measurement) - merit(self.best.measurement)))
        self.moves_since_best += 1
        if self.problem.rank(optimum) < self.problem.rank(self.best):
            if self._gain(self.best, optimum) >= ALIKE:
                self.moves_since_best = 0
            self.best = self.current = optimum
        elif merit(optimum.measurement) < merit(self.current.measurement) + allowance:
            self.current = optimum
        if self.moves_since_best >= PATIENCE:
            self.current, self.moves_since_best = self.best, 0

    def _search_locally(self, family: str) -> EvaluatedPoint:
        """Search, for a family without a move, around the current point, later around a perturbed best."""
        start = self.current
        if family in ("tabu", "anneal"):
            return self._search_discrete(family)
        if family == "evolution":
            return self._evolve()
        if self.moves:
            point = perturb_all(self.local.context, self.best.point)
            start = self.problem.evaluate(self.problem.space.clip(point))[0]
        if family == "compass":
            return self.local.compass(start, range(len(self.problem.space)))
        return self.local.optimize(start, target=None)

    def _evolve(self) -> EvaluatedPoint:
        """Go on with the run that an earlier episode left, or begin one: the first at the current point, those with
        large populations at a random point, the small ones at the best or a random point."""
        from coral.native.search.numeric.evolution import GENERATION_SHARE, LARGE, SMALL, Evolution

        if self.evolution is None:
            space = self.problem.space
            self.evolution = Evolution(evolvable(space), space.start, self.local.scales)
        evolution = self.evolution
        evolution.record = min(evolution.record, self.problem.merit(self.best.measurement), self._merit_of_others())
        if evolution.ended:
            kind, point = evolution.next_kind(), self.current.point
            if self.large_populations and evolution.runs == 1:  # many optima ask for large populations, one does not
                kind, evolution.runs = LARGE, LATER_RUN
            if evolution.runs:
                near = kind == SMALL and self.random.random() < NEAR
                point = self.best.point if near else restart(self.local.context, self.best.point)
            evolution.begin(point, kind, self.random, self.problem.affordable(GENERATION_SHARE))
        return evolution.run(self.problem, self.local.descend if self.local.differences is not None else None)

    def _merit_of_others(self) -> float:
        """Return the merit of the best point of another agent; infinite where there is none, or the check is slow."""
        if not self.others or self.moves or self.problem.seconds_per_measurement > TIMING * self.seconds:
            return math.inf
        return self.problem.merit(self.problem.measured(self.others[0]).measurement)

    def _search_discrete(self, family: str) -> EvaluatedPoint:
        """Search from the current point; later from the best, of which a share is drawn anew, from a little to all of
        it."""
        start, space = self.current, self.problem.space
        if self.moves:
            point = draw_anew(space, self.best.point, self.random.choice(SHARES_ANEW), self.random)
            start = self.problem.evaluate(point)[0]
        if family == "tabu":
            return search_by_tabu(self.problem, start, self.random)
        return anneal(self.problem, start, self.random, self.problem.deadline - time.monotonic())

    def _allowance(self) -> float:
        """Return how much worse than the current point the next one may be: a random share of the usual loss."""
        recent = sorted(self.losses[-RECENT:])
        return TOLERANCE * recent[len(recent) // 2] * self.random.random() if recent else 0.0

    def _candidate(self) -> EvaluatedPoint:
        """Return the best point found if it is better than the start, else the best of those that differ from the
        start."""
        best, start = self.problem.best, self.start
        if best is not None and self.problem.rank(best) < self.problem.rank(start):
            polished = self._polished(best)
            if self._gain(start, polished) > SAME or not start.measurement.feasible:
                return polished
        different = [optimum for optimum in self.optima if self._gain(start, optimum) < -ALIKE]
        fallback = [best] if best is not None else []
        worse = min(different or self.optima or fallback, key=self.problem.rank, default=start)
        return worse if worse.measurement.feasible else self._polished(worse)

    def _has_gained(self, least: float) -> bool:
        """Return whether the best candidate is better than the start by more than `least`, relative to its cost; than a
        start that breaks a constraint, by however little."""
        best, start = self.problem.best, self.start
        if best is None or self.problem.rank(best) >= self.problem.rank(start):
            return False
        return not start.measurement.feasible or self._gain(start, best) > least

    def _polished(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """Return the candidate with its last digits improved, strictly within its constraints."""
        self.problem.best = evaluated
        self.problem.deadline = max(self.began + self.seconds, time.monotonic() + POLISH)
        try:
            polished = self.local.polish(evaluated)
        except TimeUp:
            polished = self.problem.best
        return polished if self.problem.rank(polished) <= self.problem.rank(evaluated) else evaluated

    def _gain(self, before: EvaluatedPoint, after: EvaluatedPoint) -> float:
        """Return how much lower the cost is, relative to its size."""
        one, two = self.problem.cost(before.measurement), self.problem.cost(after.measurement)
        return (one - two) / max(1.0, abs(one))

    def _report(self) -> None:
        now = time.monotonic()
        if now - self.reported_at > self.pause():
            self.reported_at = now
            share = (now - self.began) / self.seconds
            best = self.best.measurement.score
            self.report(f"{self.family}: {self.moves} moves, best {best:.10g}", min(1.0, share))
