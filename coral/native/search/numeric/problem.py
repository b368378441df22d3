"""What is to be improved, as numbers: the cost of a point (lower is better), and how far its constraints are broken.

Everything above this line of the house speaks of costs and points; everything below of scores and texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from coral.native.search.check import Outcome
from coral.native.search.numeric.space import Space, Texts, Vector

CHUNK_SECONDS = 0.25  # between two looks at the clock


class Measures(Protocol):
    def measure(self, candidates: Sequence[Texts]) -> list[Outcome]: ...


class TimeUp(Exception):  # noqa: N818
    """The episode's time is over; what was found stands in `Problem.best`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A point with what was measured there."""

    point: Vector
    outcome: Outcome


class Problem:
    """A space and its check. Visited places compete for `best`: feasible before infeasible, then the lower cost."""

    def __init__(self, space: Space, check: Measures, maximize: bool) -> None:
        self.space, self.check, self.maximize = space, check, maximize
        self.best: Place | None = None
        self.on_best: Callable[[Place], None] = lambda _: None
        self.deadline = inf
        self.evaluations = 0
        self._busy = 0.0  # seconds spent measuring, without the first measurement, which includes the check's start

    @property
    def pace(self) -> float:
        """Seconds a measurement, on average; 0 before two have been made."""
        return self._busy / (self.evaluations - 1) if self.evaluations > 1 else 0.0

    def cost(self, outcome: Outcome) -> float:
        return -outcome.score if self.maximize else outcome.score

    def score(self, cost: float) -> float:
        return -cost if self.maximize else cost

    def rank(self, place: Place) -> tuple[float, float]:
        """What places are compared by: how far the worst constraint is broken, then the cost."""
        outcome = place.outcome
        return (inf, inf) if outcome.error else (max(0.0, -outcome.worst), self.cost(outcome))

    def merit(self, outcome: Outcome, penalty: float) -> float:
        """The cost, plus the penalty for every broken constraint; infinite where nothing could be measured."""
        if outcome.error:
            return inf
        broken = -sum(gap for gap in outcome.slack if gap < 0.0) if outcome.worst < 0.0 else 0.0
        return self.cost(outcome) + penalty * broken

    def measure(self, points: Sequence[Vector]) -> list[Outcome]:
        """Outcomes in order. Raises `TimeUp` when the deadline passes, however slow the check is."""
        out: list[Outcome] = []
        while len(out) < len(points):
            began = time.monotonic()
            if began > self.deadline:
                raise TimeUp
            size = max(1, int(CHUNK_SECONDS / self.pace)) if self.pace else 1
            chunk = points[len(out) : len(out) + size]
            out += self.check.measure([self.space.texts(point) for point in chunk])
            self._busy += time.monotonic() - began if self.evaluations else 0.0
            self.evaluations += len(chunk)
        return out

    def visit(self, *points: Vector) -> list[Place]:
        """Measure candidates in earnest: each may become the best."""
        places = [Place(point, outcome) for point, outcome in zip(points, self.measure(points), strict=True)]
        for place in places:
            if self.best is None or self.rank(place) < self.rank(self.best):
                if place.outcome.error:
                    continue
                self.best = place
                self.on_best(place)
        return places
