"""One episode of search: a start, a family, a few seconds; the best candidate found.

An episode always ends with a candidate: where nothing better was found, the best of what is different, because an
attempt that fails to improve is what shows stagnation.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from coral.native.search.families import FAMILIES, Family
from coral.native.search.local_search import LocalSearch
from coral.native.search.numeric.moves import perturb_all
from coral.native.search.numeric.problem import SAME, EvaluatedPoint, OptimizationProblem, TimeUp
from coral.native.search.numeric.space import Vector

ALIKE = 3e-6  # relative: costs closer than this are one result that was not polished
POLISH = 0.2  # of the episode's time, or this many seconds, for the last digits
TOLERANCE = 0.8  # of the usual loss: how much worse the next point of departure may be
RECENT = 30  # losses that tell what is usual
PATIENCE = 25  # moves without a new best after which the chain returns to the best
REPORT_SECONDS = 0.5  # between two reports


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodePlan:
    """`start` is what results are compared with, `chain` where the chain of moves stands (often the same)."""

    family: str
    start: Vector
    chain: Vector
    others: Sequence[Vector]
    known: Sequence[Vector] = ()  # further points that show what values are usual
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """`candidate` is what should be submitted, `chain` where the next episode of this family goes on."""

    candidate: EvaluatedPoint
    chain: EvaluatedPoint
    start: EvaluatedPoint
    moves: int
    evaluations: int
    seconds: float


@dataclass(slots=True)
class Episode:
    problem: OptimizationProblem
    plan: EpisodePlan
    random: Random
    report: Callable[[str, float], None]
    moves: int = 0
    losses: list[float] = field(default_factory=list)  # of each local optimum against the best
    optima: list[EvaluatedPoint] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    reported_at: float = 0.0
    moves_since_best: int = 0
    current: EvaluatedPoint = field(init=False)
    best: EvaluatedPoint = field(init=False)
    local: LocalSearch = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.local = LocalSearch.of(self.problem, plan.chain, plan.others, plan.known, self.random, plan.seconds)

    def run(self) -> EpisodeResult:
        """Raises only what a check that cannot be used at all raises."""
        problem, plan = self.problem, self.plan
        problem.deadline = self.began + plan.seconds * 60  # the start is measured, however slow the check is
        before = problem.evaluations
        start = self.current = self.best = problem.measured(plan.start)
        problem.best = None
        problem.deadline = self.began + plan.seconds * (1 - POLISH)
        try:
            if plan.chain != plan.start:
                self.current = problem.measured(plan.chain)
            while True:
                self._move(FAMILIES[plan.family])
                self.moves += 1
                self._report()
        except TimeUp:
            pass
        return EpisodeResult(
            candidate=self._candidate(start),
            chain=self.current,
            start=start,
            moves=self.moves,
            evaluations=problem.evaluations - before,
            seconds=time.monotonic() - self.began,
        )

    def _move(self, family: Family) -> None:
        """One move and the local optimum it leads to. The chain goes on from there, or from a little worse."""
        local, merit, allowance = self.local, self.problem.merit, self._allowance()
        if family.move is not None:
            moved = self.problem.measured(family.move(local.context, self.current.point))
            optimum = local.optimize(moved, target=merit(self.current.measurement) + allowance)
        else:
            optimum = self._search_locally(family.name)
        if not optimum.measurement.feasible and self.best.measurement.feasible:
            return
        self.optima.append(optimum)
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
        """A family without a move searches around the current point, later around a perturbed best."""
        start = self.current
        if self.moves:
            start = self.problem.evaluate(perturb_all(self.local.context, self.best.point))[0]
        if family == "evolution":
            return self.local.evolution(start)
        if family == "compass":
            return self.local.compass(start, range(len(self.problem.space)))
        return self.local.optimize(start, target=None)

    def _allowance(self) -> float:
        """How much worse than the current point the next one may be: a random share of what losses are usual."""
        recent = sorted(self.losses[-RECENT:])
        return TOLERANCE * recent[len(recent) // 2] * self.random.random() if recent else 0.0

    def _candidate(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """The best found if it is better than the start, else the best of what is not the start again."""
        best = self.problem.best
        if best is not None and self.problem.rank(best) < self.problem.rank(start):
            polished = self._polished(best)
            if self._gain(start, polished) > SAME or not start.measurement.feasible:
                return polished
        different = [optimum for optimum in self.optima if self._gain(start, optimum) < -ALIKE]
        fallback = [best] if best is not None else []
        return self._polished(min(different or self.optima or fallback, key=self.problem.rank, default=start))

    def _polished(self, evaluated: EvaluatedPoint) -> EvaluatedPoint:
        """The same candidate to the last digits, strictly within its constraints."""
        self.problem.best = evaluated
        self.problem.deadline = max(self.began + self.plan.seconds, time.monotonic() + POLISH)
        try:
            polished = self.local.polish(evaluated)
        except TimeUp:
            polished = self.problem.best
        return polished if self.problem.rank(polished) <= self.problem.rank(evaluated) else evaluated

    def _gain(self, before: EvaluatedPoint, after: EvaluatedPoint) -> float:
        """How much lower the cost is, relative to its size."""
        one, two = self.problem.cost(before.measurement), self.problem.cost(after.measurement)
        return (one - two) / max(1.0, abs(one))

    def _report(self) -> None:
        now = time.monotonic()
        if now - self.reported_at > REPORT_SECONDS:
            self.reported_at = now
            share = (now - self.began) / self.plan.seconds
            best = self.best.measurement.score
            self.report(f"{self.plan.family}: {self.moves} moves, best {best:.10g}", min(1.0, share))
