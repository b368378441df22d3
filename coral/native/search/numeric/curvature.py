"""Second derivatives estimated from gradients: a damped BFGS matrix, kept positive definite whatever it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from coral.native.search.numeric.space import Vector

DAMPING = 0.2  # the share of the old curvature that an update keeps along its step at least


class Curvature:
    def __init__(self, count: int) -> None:
        self.count = count
        self.matrix: list[Vector] | None = None  # None: nothing is known

    def update(self, step: Sequence[float], change: Sequence[float]) -> None:
        """Take in that along `step` the gradient changed by `change` (Powell's damped update)."""
        along = sum(map(mul, step, change))
        length = sum(map(mul, step, step))
        if not length:
            return
        if self.matrix is None:
            if along <= 1e-12 * length:
                return
            self.matrix = [[0.0] * self.count for _ in range(self.count)]
            for k in range(self.count):
                self.matrix[k][k] = along / length
        product = [sum(map(mul, line, step)) for line in self.matrix]
        curvature = sum(map(mul, step, product))
        if curvature <= 0.0:
            self.matrix = None
            return
        share = 1.0 if along >= DAMPING * curvature else (1 - DAMPING) * curvature / (curvature - along)
        damped = [share * c + (1 - share) * p for c, p in zip(change, product, strict=True)]
        along = sum(map(mul, step, damped))
        for line, p, c in zip(self.matrix, product, damped, strict=True):
            minus, plus = p / curvature, c / along
            line[:] = [v - minus * q + plus * e for v, q, e in zip(line, product, damped, strict=True)]
