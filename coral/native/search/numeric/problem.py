"""The problem to be solved, in numbers: the cost of a point (lower is better), and how far it breaks its constraints.

The numerical methods work with points and costs; only `OptimizationProblem` turns them into texts and scores.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from coral.public_check.candidate import Measurement, Texts
from coral.search_space.space import SearchSpace, Vector

SAME = 1e-9  # relative: costs closer than this are one result
PENALTY = 3.0  # cost of one unit of a broken constraint, when candidates are compared
CHUNK_SECONDS = 0.25  # of measuring between two looks at the clock
FEWEST = 4  # points that are measured together, however slow the check is


Measure = Callable[[Sequence[Texts]], list[Measurement]]  # of candidates, in order


class TimeUp(Exception):  # noqa: N818
    """The time of the episode is over; what was found stands in `OptimizationProblem.best` and `other`."""


@dataclass(frozen=True, slots=True)
class EvaluatedPoint:
    point: Vector
    measurement: Measurement


class OptimizationProblem:
    """A space and its check, which has been started: how long it takes is learned from the first measurement on.
    Evaluated points compete for `best`: feasible before infeasible, then the lower cost."""

    def __init__(self, space: SearchSpace, check: Measure, maximize: bool) -> None:
        self.space, self.check, self.maximize = space, check, maximize
        self.best: EvaluatedPoint | None = None
        self.submitted: list[Vector] = [space.start]  # by an agent before
        self.other: EvaluatedPoint | None = None  # the best of all measured points but `submitted`
        self.on_new_best: Callable[[EvaluatedPoint], None] = lambda _: None
        self.deadline = inf
        self.seconds = inf  # of the whole search
        self.evaluations = 0
        self._measuring = 0.0  # seconds

    @property
    def seconds_per_measurement(self) -> float:
        """The average time of the measurements so far, in seconds; 0 before the first."""
        return self._measuring / self.evaluations if self.evaluations else 0.0

    def cost(self, measurement: Measurement) -> float:
        return -measurement.score if self.maximize else measurement.score

    def rank(self, evaluated: EvaluatedPoint) -> tuple[float, float]:
        """Return what points are compared by: how far the worst constraint is broken, then the cost."""
        measurement = evaluated.measurement
        return (inf, inf) if measurement.error else (max(0.0, -measurement.worst), self.cost(measurement))

    def merit(self, measurement: Measurement, penalty: float = PENALTY) -> float:
        """Return the cost, plus the penalty for every broken constraint; infinite if nothing could be measured."""
        if measurement.error:
            return inf
        broken = -sum(gap for gap in measurement.slack if gap < 0.0) if measurement.worst < 0.0 else 0.0
        return self.cost(measurement) + penalty * broken

    def affordable(self, share: float) -> float:
        """Return how many measurements take this share of the search's time, at least FEWEST; infinite while that is
        not known."""
        pace = self.seconds_per_measurement
        return max(FEWEST, share * self.seconds / pace) if pace else inf

    def measure(self, points: Sequence[Vector]) -> list[Measurement]:
        """Return the measurements of points, in order. Raises `TimeUp` when the deadline passes, also between them."""
        return [candidate.measurement for candidate in self._candidates(points)]

    def _candidates(self, points: Sequence[Vector]) -> Iterator[EvaluatedPoint]:
        """Measure points in order, at a time as many as are done until the next look at the clock."""
        first = 0
        while first < len(points):
            began = time.monotonic()
            if began > self.deadline:
                raise TimeUp
            pace = self.seconds_per_measurement
            chunk = points[first : first + max(1, int(CHUNK_SECONDS / pace) if pace else 1)]
            measured = self.check([self.space.texts(point) for point in chunk])
            self._measuring += time.monotonic() - began
            self.evaluations += len(chunk)
            first += len(chunk)
            for candidate in map(EvaluatedPoint, chunk, measured):
                if self._is_better(candidate, self.other) and candidate.point not in self.submitted:
                    self.other = candidate
                yield candidate

    def _is_better(self, candidate: EvaluatedPoint, best: EvaluatedPoint | None) -> bool:
        return best is None or self.rank(candidate) < self.rank(best)

    def measured(self, point: Vector) -> EvaluatedPoint:
        """Measure one point, which cannot become the best."""
        return EvaluatedPoint(point, self.measure([point])[0])

    def evaluate(self, *points: Vector) -> list[EvaluatedPoint]:
        """Measure candidates, each of which may become the best, also where the deadline passes before the last."""
        evaluated: list[EvaluatedPoint] = []
        for candidate in self._candidates(points):
            evaluated.append(candidate)
            if not candidate.measurement.error and self._is_better(candidate, self.best):
                self.best = candidate
                self.on_new_best(candidate)
        return evaluated
