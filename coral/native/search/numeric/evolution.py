"""An evolution strategy with a step of its own per variable (separable covariance adaptation), for rough problems.

It needs nothing but the order of the merits in each generation, so noise, steps and cliffs do not stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from random import Random

from coral.native.search.numeric.problem import Place, Problem
from coral.native.search.numeric.space import Vector

FIRST, LAST = 0.2, 1e-9  # overall step, in scales
MOST_GENERATIONS = 2000


@dataclass(frozen=True, slots=True)
class _Rates:
    """The strategy's constants for `count` variables (Ros and Hansen's separable CMA-ES)."""

    weights: Vector
    mass: float  # how many equal parents the weights amount to
    path: float
    damping: float
    cumulation: float
    rank_one: float
    rank_many: float
    length: float

    @classmethod
    def of(cls, count: int) -> _Rates:
        half = (4 + int(3 * log(count + 1))) // 2
        raw = [log(half + 0.5) - log(k + 1) for k in range(half)]
        weights = [w / sum(raw) for w in raw]
        mass = 1.0 / sum(w * w for w in weights)
        path = (mass + 2) / (count + mass + 5)
        faster = (count + 2) / 3  # a diagonal is learned sooner than a matrix
        rank_one = min(0.5, faster * 2 / ((count + 1.3) ** 2 + mass))
        rank_many = min(1 - rank_one, faster * 2 * (mass - 2 + 1 / mass) / ((count + 2) ** 2 + mass))
        return cls(
            weights=weights,
            mass=mass,
            path=path,
            damping=1 + path + 2 * max(0.0, sqrt((mass - 1) / (count + 1)) - 1),
            cumulation=4 / (count + 4),
            rank_one=rank_one,
            rank_many=max(0.0, rank_many),
            length=sqrt(count) * (1 - 1 / (4 * count) + 1 / (21 * count * count)),
        )


class Evolution:
    def __init__(
        self, problem: Problem, variables: Sequence[int], scales: Sequence[float], random: Random, penalty: float
    ) -> None:
        self.problem, self.variables, self.random, self.penalty = problem, list(variables), random, penalty
        self.scales = [scales[k] for k in variables]
        self.rates = _Rates.of(len(self.variables))
        self.sigma = FIRST
        self.spread = [1.0] * len(self.variables)  # variances
        self.path_of_step = [0.0] * len(self.variables)
        self.path_of_spread = [0.0] * len(self.variables)

    def run(self, start: Place) -> Place:
        """Generations until the step has shrunk to nothing; the best place met."""
        best, mean = start, [start.point[k] for k in self.variables]
        for _ in range(MOST_GENERATIONS):
            mean, found = self._generation(start.point, mean)
            if self._merit(found) < self._merit(best):
                best = found
            if self.sigma * max(map(sqrt, self.spread)) < LAST:
                break
        return best

    def _generation(self, frame: Vector, mean: Vector) -> tuple[Vector, Place]:
        count = 2 * len(self.rates.weights)
        draws = [[self.random.gauss(0.0, sqrt(v)) for v in self.spread] for _ in range(count)]
        points = []
        for draw in draws:
            point = list(frame)
            for k, value, scale, drawn in zip(self.variables, mean, self.scales, draw, strict=True):
                point[k] = value + self.sigma * scale * drawn
            points.append(self.problem.space.clip(point))
        places = self.problem.visit(*points)
        order = sorted(range(count), key=lambda k: self._merit(places[k]))
        chosen = [draws[k] for k in order[: len(self.rates.weights)]]
        weighted = [[w * d for d in draw] for w, draw in zip(self.rates.weights, chosen, strict=True)]
        step = [sum(parts) for parts in zip(*weighted, strict=True)]
        self._adapt(step, chosen)
        moved = [v + self.sigma * s * d for v, s, d in zip(mean, self.scales, step, strict=True)]
        return moved, places[order[0]]

    def _adapt(self, step: Vector, chosen: list[Vector]) -> None:
        rates = self.rates
        push = sqrt(rates.path * (2 - rates.path) * rates.mass)
        self.path_of_step = [
            (1 - rates.path) * p + push * d / sqrt(v)
            for p, d, v in zip(self.path_of_step, step, self.spread, strict=True)
        ]
        length = sqrt(sum(p * p for p in self.path_of_step))
        calm = float(length < (1.4 + 2 / (len(step) + 1)) * rates.length)
        pull = calm * sqrt(rates.cumulation * (2 - rates.cumulation) * rates.mass)
        self.path_of_spread = [
            (1 - rates.cumulation) * p + pull * d for p, d in zip(self.path_of_spread, step, strict=True)
        ]
        keep = 1 - rates.rank_one - rates.rank_many
        self.spread = [
            max(1e-20, keep * v + rates.rank_one * p * p + rates.rank_many * self._mean_square(chosen, j))
            for j, (v, p) in enumerate(zip(self.spread, self.path_of_spread, strict=True))
        ]
        self.sigma *= exp(min(1.0, rates.path / rates.damping * (length / rates.length - 1)))

    def _mean_square(self, chosen: list[Vector], variable: int) -> float:
        return sum(w * draw[variable] ** 2 for w, draw in zip(self.rates.weights, chosen, strict=True))

    def _merit(self, place: Place) -> float:
        return self.problem.merit(place.outcome, self.penalty)
