"""One episode: a start, a family, a few seconds; the best candidate found.

An episode always ends with a candidate: where nothing better was found, the best of what is different, because an
attempt that fails to improve is what shows stagnation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from coral.native.search.families import FAMILIES, Family
from coral.native.search.local_search import Ground
from coral.native.search.numeric.moves import shake
from coral.native.search.numeric.problem import Place, Problem, TimeUp
from coral.native.search.numeric.space import Vector

SAME, ALIKE = 1e-9, 3e-6  # relative: costs closer than this are one result; with the last digits, and without
FINISH = 0.2  # of the episode's time, or this many seconds, for the last digits
TOLERANCE = 0.8  # of the usual loss: how much worse the next point of departure may be
RECENT = 30  # losses that tell what is usual
FRESH = 25  # hops without a new best after which the chain returns to it
PULSE = 0.5  # seconds between two reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`start` is where the comparison begins, `here` where the chain of moves stands (often the same)."""

    family: str
    start: Vector
    here: Vector
    others: Sequence[Vector]
    seen: Sequence[Vector] = ()  # further points that tell what values are usual
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`candidate` is what should be handed in, `chain` where the next episode of this kind goes on."""

    candidate: Place
    chain: Place
    start: Place
    moves: int
    evaluations: int
    seconds: float


@dataclass(slots=True)
class Episode:
    problem: Problem
    plan: Plan
    random: Random
    report: Callable[[str, float], None]
    moves: int = 0
    losses: list[float] = field(default_factory=list)
    finals: list[Place] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    said: float = 0.0
    quiet: int = 0  # moves since the last new best
    here: Place = field(init=False)
    best: Place = field(init=False)
    ground: Ground = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.ground = Ground.of(self.problem, plan.here, plan.others, plan.seen, self.random, plan.seconds)

    def run(self) -> Found:
        """Raises only what a check that cannot be used at all raises."""
        problem, plan = self.problem, self.plan
        problem.deadline = self.began + plan.seconds * 60  # the start is measured, however slow the check is
        before = problem.evaluations
        start = self.here = self.best = Place(plan.start, problem.measure([plan.start])[0])
        problem.best = None
        problem.deadline = self.began + plan.seconds * (1 - FINISH)
        try:
            if plan.here != plan.start:
                self.here = Place(plan.here, problem.measure([plan.here])[0])
            while True:
                self._turn(FAMILIES[plan.family])
                self.moves += 1
                self._pulse()
        except TimeUp:
            pass
        return Found(
            candidate=self._candidate(start),
            chain=self.here,
            start=start,
            moves=self.moves,
            evaluations=problem.evaluations - before,
            seconds=time.monotonic() - self.began,
        )

    def _turn(self, family: Family) -> None:
        """One move and what settles from it. The chain goes on from there, or from a little worse, for a while."""
        ground, allowance = self.ground, self._allowance()
        if family.move is not None:
            point = family.move(ground.view, self.here.point)
            moved = Place(point, self.problem.measure([point])[0])
            settled = ground.settle(moved, beat=ground.merit(self.here) + allowance)
        else:
            settled = self._local(family.name)
        if not settled.outcome.feasible and self.best.outcome.feasible:
            return
        self.finals.append(settled)
        self.losses.append(max(0.0, ground.merit(settled) - ground.merit(self.best)))
        self.quiet += 1
        if self.problem.rank(settled) < self.problem.rank(self.best):
            self.quiet = self.quiet if self._gain(self.best, settled) < ALIKE else 0
            self.best = self.here = settled
        elif ground.merit(settled) < ground.merit(self.here) + allowance:
            self.here = settled
        if self.quiet >= FRESH:
            self.here, self.quiet = self.best, 0

    def _local(self, name: str) -> Place:
        """The families that only search around a place; from the second time on, around a shaken one."""
        place = self.here
        if self.moves:
            place = self.problem.visit(shake(self.ground.view, self.best.point))[0]
        if name == "evolution":
            return self.ground.evolution(place)
        if name == "compass":
            return self.ground.compass(place, range(len(self.problem.space)))
        return self.ground.settle(place, beat=None)

    def _allowance(self) -> float:
        """How much worse than the present point the next one may be; drawn anew, from what losses are usual."""
        recent = sorted(self.losses[-RECENT:])
        return TOLERANCE * recent[len(recent) // 2] * self.random.random() if recent else 0.0

    def _candidate(self, start: Place) -> Place:
        """The best found if it is better than the start, else the best of what is not the start again."""
        best = self.problem.best
        if best is not None and self.problem.rank(best) < self.problem.rank(start):
            finished = self._finished(best)
            if self._gain(start, finished) > SAME or not start.outcome.feasible:
                return finished
        different = [place for place in self.finals if self._gain(start, place) < -ALIKE]
        known = [best] if best is not None else []
        return self._finished(min(different or self.finals or known, key=self.problem.rank, default=start))

    def _finished(self, place: Place) -> Place:
        """The same candidate to the last digits, strictly within its constraints."""
        self.problem.best = place
        self.problem.deadline = max(self.began + self.plan.seconds, time.monotonic() + FINISH)
        try:
            done = self.ground.finish(place)
        except TimeUp:
            done = self.problem.best
        return done if self.problem.rank(done) <= self.problem.rank(place) else place

    def _gain(self, before: Place, after: Place) -> float:
        """How much lower the cost is, relative to its size."""
        one, two = (self.problem.cost(place.outcome) for place in (before, after))
        return (one - two) / max(1.0, abs(one))

    def _pulse(self) -> None:
        now = time.monotonic()
        if now - self.said > PULSE:
            self.said = now
            share = (now - self.began) / self.plan.seconds
            self.report(f"{self.plan.family}: {self.moves} moves, best {self.best.outcome.score:.10g}", min(1.0, share))
