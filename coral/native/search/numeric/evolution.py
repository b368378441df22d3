"""An evolution strategy with a step of its own per variable (separable covariance adaptation), for rough problems.

It needs nothing but the order of the merits in each generation, so noise, steps and cliffs do not stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from random import Random

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.space import Vector

FIRST_STEP, LAST_STEP = 0.2, 1e-9  # overall, in scales
MOST_GENERATIONS = 2000


@dataclass(frozen=True, slots=True)
class _Rates:
    """The strategy's constants for `count` variables (separable CMA-ES, Ros and Hansen 2008, with their symbols)."""

    weights: Vector
    parents: float  # how many equal parents the weights amount to: mu_eff
    step_rate: float  # c_sigma
    damping: float  # d_sigma
    cumulation: float  # c_c
    rank_one: float  # c_1
    rank_many: float  # c_mu
    length: float  # of a random step, as expected: chi_n

    @classmethod
    def of(cls, count: int) -> _Rates:
        half = (4 + int(3 * log(count + 1))) // 2
        raw = [log(half + 0.5) - log(k + 1) for k in range(half)]
        weights = [w / sum(raw) for w in raw]
        parents = 1.0 / sum(w * w for w in weights)
        step_rate = (parents + 2) / (count + parents + 5)
        faster = (count + 2) / 3  # a diagonal is learned sooner than a matrix
        rank_one = min(0.5, faster * 2 / ((count + 1.3) ** 2 + parents))
        rank_many = min(1 - rank_one, faster * 2 * (parents - 2 + 1 / parents) / ((count + 2) ** 2 + parents))
        return cls(
            weights=weights,
            parents=parents,
            step_rate=step_rate,
            damping=1 + step_rate + 2 * max(0.0, sqrt((parents - 1) / (count + 1)) - 1),
            cumulation=4 / (count + 4),
            rank_one=rank_one,
            rank_many=max(0.0, rank_many),
            length=sqrt(count) * (1 - 1 / (4 * count) + 1 / (21 * count * count)),
        )


class EvolutionStrategy:
    def __init__(
        self,
        problem: OptimizationProblem,
        indices: Sequence[int],  # of the variables that it may change
        scales: Sequence[float],
        random: Random,
        penalty: float,
    ) -> None:
        self.problem, self.indices, self.random, self.penalty = problem, list(indices), random, penalty
        self.scales = [scales[k] for k in indices]
        self.rates = _Rates.of(len(self.indices))
        self.sigma = FIRST_STEP
        self.variances = [1.0] * len(self.indices)
        self.path_of_step = [0.0] * len(self.indices)
        self.path_of_variances = [0.0] * len(self.indices)

    def run(self, start: EvaluatedPoint) -> EvaluatedPoint:
        """Generations until the step has shrunk to nothing; the best point met."""
        best, mean = start, [start.point[k] for k in self.indices]
        for _ in range(MOST_GENERATIONS):
            mean, winner = self._generation(start.point, mean)
            if self._merit(winner) < self._merit(best):
                best = winner
            if self.sigma * max(map(sqrt, self.variances)) < LAST_STEP:
                break
        return best

    def _generation(self, start: Vector, mean: Vector) -> tuple[Vector, EvaluatedPoint]:
        """Draw and rank one generation; the new mean, and the best of it."""
        count = 2 * len(self.rates.weights)
        draws = [[self.random.gauss(0.0, sqrt(v)) for v in self.variances] for _ in range(count)]
        points = []
        for draw in draws:
            point = list(start)
            for k, value, scale, drawn in zip(self.indices, mean, self.scales, draw, strict=True):
                point[k] = value + self.sigma * scale * drawn
            points.append(self.problem.space.clip(point))
        evaluated = self.problem.evaluate(*points)
        order = sorted(range(count), key=lambda k: self._merit(evaluated[k]))
        chosen = [draws[k] for k in order[: len(self.rates.weights)]]
        weighted = [[w * d for d in draw] for w, draw in zip(self.rates.weights, chosen, strict=True)]
        step = [sum(parts) for parts in zip(*weighted, strict=True)]
        self._adapt(step, chosen)
        moved = [v + self.sigma * s * d for v, s, d in zip(mean, self.scales, step, strict=True)]
        return moved, evaluated[order[0]]

    def _adapt(self, step: Vector, chosen: list[Vector]) -> None:
        """Lengthen or shorten the overall step, and each variable's own, by what the chosen draws have in common."""
        rates = self.rates
        push = sqrt(rates.step_rate * (2 - rates.step_rate) * rates.parents)
        self.path_of_step = [
            (1 - rates.step_rate) * p + push * d / sqrt(v)
            for p, d, v in zip(self.path_of_step, step, self.variances, strict=True)
        ]
        length = sqrt(sum(p * p for p in self.path_of_step))
        calm = float(length < (1.4 + 2 / (len(step) + 1)) * rates.length)
        pull = calm * sqrt(rates.cumulation * (2 - rates.cumulation) * rates.parents)
        self.path_of_variances = [
            (1 - rates.cumulation) * p + pull * d for p, d in zip(self.path_of_variances, step, strict=True)
        ]
        keep = 1 - rates.rank_one - rates.rank_many
        self.variances = [
            max(1e-20, keep * v + rates.rank_one * p * p + rates.rank_many * self._mean_square(chosen, j))
            for j, (v, p) in enumerate(zip(self.variances, self.path_of_variances, strict=True))
        ]
        self.sigma *= exp(min(1.0, rates.step_rate / rates.damping * (length / rates.length - 1)))

    def _mean_square(self, chosen: list[Vector], k: int) -> float:
        return sum(w * draw[k] ** 2 for w, draw in zip(self.rates.weights, chosen, strict=True))

    def _merit(self, evaluated: EvaluatedPoint) -> float:
        return self.problem.merit(evaluated.measurement, self.penalty)
