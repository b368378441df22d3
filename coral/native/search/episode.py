"""Runs one episode of search: from a start, with one family, for a few seconds; returns the best candidate found.

An episode always ends with a candidate. If it found nothing better, that is the best of those that differ from the
start, because only an attempt that fails to improve shows stagnation. For that an episode lasts as long as a few
measurements, however slow the check is.

Its local searches cover every kind of variable, in turns: reals descend along gradients where the check is fast enough
for that, integers and choices are searched by compass.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from coral.native.search.families import ANNEAL, EVOLUTION, FAMILIES, LOCAL, SCATTER, TABU, Family, hops
from coral.native.search.local_search import LocalSearch, are_gradients_affordable
from coral.native.search.numeric.discrete import anneal, draw_anew, search_by_tabu
from coral.native.search.numeric.moves import perturb_all, redraw_few, restart
from coral.native.search.numeric.problem import SAME, EvaluatedPoint, OptimizationProblem, TimeUp
from coral.search_space.space import SearchSpace, Vector

if TYPE_CHECKING:  # numpy and scipy take half a second: each is loaded by the first search that needs it
    from coral.native.search.numeric.evolution import Evolution

ALIKE = 3e-6  # relative: costs closer than this are one result before the last digits are sought
POLISH = 0.2  # of the episode's time, or this many seconds, for the last digits
QUICK = 5e-4  # seconds of a measurement: a check that takes longer is timed for longer
TIMING = 0.02  # of the episode's time, for that
FEWEST = 4.0  # measurements, of the start among others, that an episode has time for
LEADERS = 6  # of the new bests by a noisy check, the last that are measured again
REPEATS = 100  # times, if the last POLISH of the episode suffices
VALID_SHARE = 0.3  # of the episode's time, to find a point that the check accepts, where it rejects the start
WIDEST = 3.0  # powers of ten by which ranges are wider for that
LINE_PATIENCE = 12  # moves that gain nothing, after which a line that began anywhere is given up
DESCENT_STEPS = 250  # gradients of a long descent without constraints; an episode is extended for one
SHARES_ANEW = (0.1, 0.3, 1.0)  # of the integers, choices and orders, between two tabu searches


def evolvable(space: SearchSpace) -> list[int]:
    return [k for k, variable in enumerate(space.variables) if not variable.choices and not variable.permutation]


@dataclass(slots=True)
class Episode:
    """One episode. It begins at the point `start`, and compares with it what it finds. The next episode goes on with
    the `evolution` that this one leaves."""

    problem: OptimizationProblem
    _: KW_ONLY
    family: str
    others: Sequence[Vector]
    known: Sequence[Vector] = ()  # further points that show what values are usual
    seconds: float
    longest: float  # seconds of the episode, if a descent takes longer than `seconds`
    random: Random
    report: Callable[[str, float], None]
    pause: Callable[[], float]  # returns the seconds between two reports
    evolution: "Evolution | None" = None  # as an earlier episode left it
    on_generation: Callable[["Evolution"], None] = lambda _: None  # called after each generation of the evolution
    large_populations: bool = False  # whether an evolution that begins has them after its first run
    noisy: bool | None = None  # whether two measurements of a point differ; None if that is not known yet
    moves: int = 0
    optima: list[EvaluatedPoint] = field(default_factory=list)
    bests: list[EvaluatedPoint] = field(default_factory=list)  # each the best so far by a noisy check
    began: float = field(default_factory=lambda: time.monotonic())
    reported_at: float = 0.0
    line: EvaluatedPoint | None = None  # the best of a line that began anywhere
    line_moves: int = 0  # since it gained last
    start: EvaluatedPoint = field(init=False)
    best: EvaluatedPoint = field(init=False)
    local: LocalSearch = field(init=False)

    def run(self) -> EvaluatedPoint:
        """Run the episode and return the point to submit. Raises only what a check that cannot be used at all
        raises."""
        problem = self.problem
        problem.seconds = self.seconds
        problem.deadline = math.inf  # the start is measured, however slow the check is
        problem.submitted = [problem.space.start, *self.others]
        self.start = self.best = problem.measured(problem.space.start)
        self._learn_noise()
        self._learn_pace()
        self.seconds = problem.seconds = max(self.seconds, FEWEST * problem.seconds_per_measurement)
        noisy = bool(self.noisy)
        gradients = are_gradients_affordable(problem, self.start.measurement, noisy)
        if gradients:
            self._take_time_for_descent()
        declared = problem.space.takes_declared(self.random)
        points = self.start.point, self.others, self.known
        self.local = LocalSearch(problem, *points, self.random, gradients, declared, noisy=noisy)
        problem.best = None
        if self.best.measurement.error:
            self._find_valid()
        # Last digits are sought of what is better, in the reals: where there is none, the time is the search's.
        for share in self._shares():
            problem.deadline = self.began + self.seconds * share
            with suppress(TimeUp):
                self._search()
            if problem.best is not None and problem.rank(problem.best) < problem.rank(self.best):
                self.best = problem.best  # the time was over in the middle of a move
            if problem.best is not None and self._has_gained(problem.best, ALIKE):
                break
        return self._best_by_mean(self._candidate()) if self.noisy else self._candidate()

    def _learn_noise(self) -> None:
        """Measure the start once more, if it is not known whether the check is noisy; collect new bests if it is."""
        problem = self.problem
        if self.noisy is None and not self.start.measurement.error:
            again = problem.measured(self.start.point)
            self.noisy = bool(again.measurement.error) or abs(self._gain(self.start, again)) > SAME
        if self.noisy:
            on_new_best = problem.on_new_best

            def collect(best: EvaluatedPoint) -> None:
                self.bests.append(best)
                on_new_best(best)

            problem.on_new_best = collect

    def _shares(self) -> tuple[float, ...]:
        """Return until when the episode searches, and until when it searches on if it has gained nothing by then, as
        shares of its time. The rest is for the last digits, or for measuring the bests of a noisy check again."""
        if self.noisy:
            return (1.0 - POLISH,)
        return (1.0 - POLISH, 1.0) if self.local.differences is not None else (1.0,)

    def _best_by_mean(self, candidate: EvaluatedPoint) -> EvaluatedPoint:
        """Measure the last bests and the candidate again, and return the best by the mean: the best of many noisy
        measurements is the luckiest. Its score is the mean, its slack the worst."""
        problem, start = self.problem, self.start.point
        leaders = (*self.bests[-LEADERS:], *self.local.centres[-LEADERS:], candidate)
        points = [leader.point for leader in leaders if leader.point != start] or [start]
        affordable = int(POLISH * self.seconds / max(problem.seconds_per_measurement, 1e-9))
        points = points[-max(1, affordable // 2) :]
        repeats = max(1, min(REPEATS, affordable // len(points)))
        problem.deadline = math.inf
        means = []
        for point in points:
            measured = problem.measure([point] * repeats)
            worst = max(measured, key=lambda measurement: (bool(measurement.error), -measurement.worst))
            means.append(
                EvaluatedPoint(point, replace(worst, score=fmean(measurement.score for measurement in measured)))
            )
        return min(means, key=problem.rank)

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

    def _find_valid(self) -> None:
        """Go on from a random point that the check accepts, in ranges that are as wide as it takes: where it rejects
        the start, these show nothing."""
        self.problem.deadline = self.began + VALID_SHARE * self.seconds
        with suppress(TimeUp):
            while self.best.measurement.error:
                context = self.local.context.widen(10.0 ** self.random.uniform(0.0, WIDEST))
                everywhere = [context.draw_value(k) for k in range(len(context.space))]
                points = [context.space.clip(everywhere), redraw_few(context, self.start.point)]
                found = min(self.problem.evaluate(*points), key=self.problem.rank)
                if not found.measurement.error:
                    self.best = found
                    self.local.context = context

    def _take_time_for_descent(self) -> None:
        """Extend an episode of local search that is shorter than one descent takes."""
        if FAMILIES[self.family].kind == LOCAL and not self.start.measurement.slack:
            descent = DESCENT_STEPS * (len(self.problem.space.reals) + 1) * self.problem.seconds_per_measurement
            self.seconds = self.problem.seconds = max(self.seconds, min(descent, self.longest))

    def _move_in_line(self) -> None:
        """Go on with a line of optima, each near the last one; begin one at a random point where there is none, or the
        last moves have gained nothing. Whether the line is better than the best so far is of no account to it."""
        if self.line is None or self.line_moves >= LINE_PATIENCE:
            start = self.problem.evaluate(restart(self.local.context, self.best.point))[0]
            line, self.line_moves = self.local.optimize(start, target=None), 0
        else:
            near = hops(self.problem.space)
            family = self.random.choices(near, weights=[family.prior for family in near])[0]
            line = min(self.line, self._optimum_after(family, self.line), key=self.problem.rank)
            self.line_moves = 0 if self._gain(self.line, line) > ALIKE else self.line_moves + 1
        if line.measurement.error or (not line.measurement.feasible and self.best.measurement.feasible):
            self.line = None
            return
        self.line = line
        self.optima.append(line)
        self.best = min(self.best, line, key=self.problem.rank)

    def _optimum_after(self, family: Family, before: EvaluatedPoint) -> EvaluatedPoint:
        """Move away from a point, and return the local optimum that is found from there."""
        assert family.move is not None, "a family of local search alone leaves no point"
        local = self.local
        point = self.problem.space.clip(family.move(local.context, before.point))
        moved = local.settle(self.problem.measured(point), before.point)
        return local.optimize(moved, target=self.problem.merit(before.measurement))

    def _move(self, family: Family) -> None:
        """Search from the best point so far: make the move of the family, if it has one, then search locally."""
        optimum = self._optimum_after(family, self.best) if family.move else self._search_locally(family.name)
        if optimum.measurement.feasible or not self.best.measurement.feasible:
            self.optima.append(optimum)
            self.best = min(self.best, optimum, key=self.problem.rank)

    def _search_locally(self, family: str) -> EvaluatedPoint:
        """Search by a family without a move: first from the best point, then from a changed copy of it. Reals are
        perturbed for that; of a tabu search's integers, choices and orders a share is drawn anew. Annealing always
        begins at the best point, because it leaves it by itself."""
        problem, start = self.problem, self.best
        if family == EVOLUTION:
            return self._evolve()
        if family == ANNEAL:
            return anneal(problem, start, self.random, problem.deadline - time.monotonic())
        if self.moves and family == TABU:
            anew = draw_anew(problem.space, self.best.point, self.random.choice(SHARES_ANEW), self.random)
            start = problem.evaluate(anew)[0]
            if start.measurement.error:  # no neighbour is better than another there
                start = self.best
        elif self.moves:
            start = problem.evaluate(perturb_all(self.local.context, self.best.point))[0]
        if family == TABU:
            return search_by_tabu(problem, start, self.random)
        if family == "compass":
            return self.local.compass(start, range(len(problem.space)))
        return self.local.optimize(start, target=None)

    def _evolve(self) -> EvaluatedPoint:
        """Go on with the run that an earlier episode left, or begin one: the first at the best point, later ones at a
        random point."""
        from coral.native.search.numeric.evolution import GENERATION_SHARE, Evolution

        if self.evolution is None:
            space = self.problem.space
            scales, large = self.local.context.scales, self.large_populations
            self.evolution = Evolution(evolvable(space), space.start, scales, large)
        evolution = self.evolution
        evolution.record = min(evolution.record, self.problem.merit(self.best.measurement), self._merit_of_others())
        if evolution.ended:
            point = restart(self.local.context, self.best.point) if evolution.evaluations else self.best.point
            evolution.scales, most = self.local.context.scales, self.problem.affordable(GENERATION_SHARE)
            evolution.begin(point, self.random, evolution.next_doublings(), most)
        descend = self.local.descend if self.local.can_descend else None
        return evolution.run(self.problem, descend, lambda: self.on_generation(evolution))

    def _merit_of_others(self) -> float:
        """Return the merit of the best point of another agent; infinite where there is none, or the check is slow."""
        if not self.others or self.moves or self.problem.seconds_per_measurement > TIMING * self.seconds:
            return math.inf
        return self.problem.merit(self.problem.measured(self.others[0]).measurement)

    def _candidate(self) -> EvaluatedPoint:
        """Return the best point found if it is better than the start, else the best of those that differ from the
        start."""
        best, start = self.problem.best, self.start
        if best is not None and self._has_gained(best, -math.inf):
            polished = self._polished(best)
            if self._has_gained(polished, SAME):
                return polished
        found = [optimum for optimum in self.optima if optimum.point != start.point and not optimum.measurement.error]
        clearly = [optimum for optimum in found if self._gain(start, optimum) < -ALIKE]
        other = [self.problem.other] if self.problem.other is not None else []
        worse = min(clearly or found or other, key=self.problem.rank, default=start)
        return worse if worse.measurement.feasible else self._polished(worse)

    def _has_gained(self, found: EvaluatedPoint, least: float) -> bool:
        """Return whether a point is better than the start by more than `least`, relative to its cost; than a start that
        breaks a constraint, by however little."""
        if self.problem.rank(found) >= self.problem.rank(self.start):
            return False
        return not self.start.measurement.feasible or self._gain(self.start, found) > least

    def _polished(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """Return the candidate with its last digits improved, strictly within its constraints. Return it unchanged if
        there are no gradients, for example because the check is noisy."""
        self.problem.best = evaluated
        self.problem.deadline = max(self.began + self.seconds, time.monotonic() + POLISH)
        try:
            polished = self.local.polish(evaluated)
        except TimeUp:
            polished = self.problem.best
        return min(polished, evaluated, key=self.problem.rank)

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
            self.report(
                f"{self.family}: {self.moves} move{'s' if self.moves != 1 else ''}, best {best:.10g}", min(1.0, share)
            )
