"""Convex quadratic programs with elastic rows in a box, solved by a primal-dual interior point method.

    minimise    gradient.d + d.curvature.d / 2 + penalty * sum t_i
    subject to  row_i.d + offset_i + t_i >= 0,   t_i >= 0,   lower <= d <= upper

Elastic rows make every program solvable: a row that cannot be met is missed at the price `penalty` a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from coral.native.search.numeric.sparse import Matrix, NormalMatrix, SparseRow

MOST_ITERATIONS = 40
NARROWEST = 1e-12  # half the width of a box that leaves no room
BOUNDARY = 0.995  # the share of the way to a bound that one step may go
RESIDUAL = 1e-3  # how far from stationary the solution may be, as a share of the gradient

Vector = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadraticProgram:
    gradient: Sequence[float]
    curvature: Matrix | None  # symmetric, positive semidefinite; None is zero
    rows: Sequence[SparseRow]
    offsets: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    penalty: float


@dataclass(frozen=True, slots=True)
class Solution:
    step: Vector
    multipliers: Vector  # of the rows; between 0 and the penalty


@dataclass(slots=True)
class _Pairs:
    """One group of complementary pairs: `a >= 0`, `b >= 0`, and `a * b` driven to zero."""

    a: Vector
    b: Vector

    def gap(self) -> float:
        gap: float = sum(map(mul, self.a, self.b))
        return gap

    def gap_after(self, da: Vector, db: Vector, pa: float, pb: float) -> float:
        """The gap after the shares `pa` and `pb` of a move."""
        return sum((a + pa * x) * (b + pb * y) for a, b, x, y in zip(self.a, self.b, da, db, strict=True))

    def residual(self, target: float, da: Vector, db: Vector) -> Vector:
        """What remains to be corrected so that the products become `target`, counting the second-order term."""
        return [target - a * b - x * y for a, b, x, y in zip(self.a, self.b, da, db, strict=True)]

    def moved(self, da: Vector, db: Vector, pa: float, pb: float) -> _Pairs:
        return _Pairs(
            [a + pa * x for a, x in zip(self.a, da, strict=True)],
            [b + pb * y for b, y in zip(self.b, db, strict=True)],
        )


PairChanges = tuple[tuple[Vector, Vector], ...]  # (da, db) of rows, elastics, lower and upper bounds


def solve(program: QuadraticProgram, accuracy: float) -> Solution:
    """Solve until the solution is within about `accuracy` of the optimum, in units of the objective."""
    return _InteriorPoint(program).run(accuracy)


class _InteriorPoint:
    """One solution in progress. Its pairs: rows (s, multiplier), elastics (t, penalty - multiplier), and the lower and
    the upper bounds (distance, multiplier)."""

    def __init__(self, program: QuadraticProgram) -> None:
        count = len(program.gradient)
        self.program = program
        self.normal = NormalMatrix(count, program.rows, program.curvature)
        self.largest = max(max(map(abs, program.gradient), default=0.0), 1e-300)
        half_widths = [max(NARROWEST, 0.5 * (b - a)) for a, b in zip(program.lower, program.upper, strict=True)]
        self.step = [0.5 * (a + b) for a, b in zip(program.lower, program.upper, strict=True)]
        reach = max(half_widths, default=1.0)
        floor = 0.1 * reach
        offsets = [row.dot(self.step) + o for row, o in zip(program.rows, program.offsets, strict=True)]
        slack = [max(offset, 0.0) + floor for offset in offsets]
        multipliers = [min(0.5 * program.penalty, self.largest * reach / s) for s in slack]
        self.pairs = (
            _Pairs(slack, multipliers),
            _Pairs([s - o for s, o in zip(slack, offsets, strict=True)], [program.penalty - v for v in multipliers]),
            _Pairs(half_widths, [self.largest * reach / h for h in half_widths]),
            _Pairs(list(half_widths), [self.largest * reach / h for h in half_widths]),
        )

    def run(self, accuracy: float) -> Solution:
        pairs = 2 * (len(self.step) + len(self.program.rows))
        for _ in range(MOST_ITERATIONS):
            gap = sum(pair.gap() for pair in self.pairs)
            dual, primal = self._residuals()
            if gap < accuracy and max(map(abs, dual), default=0.0) < RESIDUAL * self.largest:
                break
            self._factor()
            none: PairChanges = tuple(([0.0] * len(pair.a), [0.0] * len(pair.a)) for pair in self.pairs)
            step, move = self._direction(dual, primal, 0.0, none)
            primal_share, dual_share = self._shares(move)
            after = sum(
                pair.gap_after(da, db, primal_share, dual_share)
                for pair, (da, db) in zip(self.pairs, move, strict=True)
            )
            step, move = self._direction(dual, primal, gap / pairs * (after / gap) ** 3, move)
            primal_share, dual_share = (BOUNDARY * share for share in self._shares(move))
            self.step = [x + primal_share * dx for x, dx in zip(self.step, step, strict=True)]
            rows, elastic, low, up = (
                pair.moved(da, db, primal_share, dual_share) for pair, (da, db) in zip(self.pairs, move, strict=True)
            )
            self.pairs = (rows, elastic, low, up)
        return Solution(self.step, self.pairs[0].b)

    def _residuals(self) -> tuple[Vector, Vector]:
        """How far from stationary, and how far the rows are from `row.step + offset + t = s`."""
        rows, elastic, low, up = self.pairs
        program = self.program
        dual = [g - z + y for g, z, y in zip(program.gradient, low.b, up.b, strict=True)]
        if program.curvature is not None:
            dual = [v + sum(map(mul, line, self.step)) for v, line in zip(dual, program.curvature, strict=True)]
        for row, multiplier in zip(program.rows, rows.b, strict=True):
            for column, value in zip(row.columns, row.values, strict=True):
                dual[column] -= value * multiplier
        primal = [
            row.dot(self.step) + offset + t - s
            for row, offset, t, s in zip(program.rows, program.offsets, elastic.a, rows.a, strict=True)
        ]
        return dual, primal

    def _factor(self) -> None:
        rows, elastic, low, up = self.pairs
        self.weights = [1.0 / (s / v + t / w) for s, v, t, w in zip(rows.a, rows.b, elastic.a, elastic.b, strict=True)]
        self.normal.factor(
            [z / p + y / q for z, p, y, q in zip(low.b, low.a, up.b, up.a, strict=True)],
            self.weights,
        )

    def _direction(self, dual: Vector, primal: Vector, target: float, last: PairChanges) -> tuple[Vector, PairChanges]:
        """The Newton direction to products of `target`, with the second-order term of the `last` direction."""
        rows, elastic, low, up = self.pairs
        wanted = [pair.residual(target, da, db) for pair, (da, db) in zip(self.pairs, last, strict=True)]
        missing = [
            a / v - b / w - r for a, v, b, w, r in zip(wanted[0], rows.b, wanted[1], elastic.b, primal, strict=True)
        ]
        right = [a / p - b / q - u for a, p, b, q, u in zip(wanted[2], low.a, wanted[3], up.a, dual, strict=True)]
        for row, weight, value in zip(self.program.rows, self.weights, missing, strict=True):
            for column, entry in zip(row.columns, row.values, strict=True):
                right[column] += entry * weight * value
        step = self.normal.solve(right)
        backwards = [-x for x in step]
        multipliers = [
            weight * (value - row.dot(step))
            for weight, value, row in zip(self.weights, missing, self.program.rows, strict=True)
        ]
        relief = [-x for x in multipliers]
        return step, (
            (_follow(wanted[0], rows.a, multipliers, rows.b), multipliers),
            (_follow(wanted[1], elastic.a, relief, elastic.b), relief),
            (step, _follow(wanted[2], low.b, step, low.a)),
            (backwards, _follow(wanted[3], up.b, backwards, up.a)),
        )

    def _shares(self, move: PairChanges) -> tuple[float, float]:
        """How much of the move keeps the first members, and the second members, of all pairs positive."""
        first = second = 1.0
        for pair, (da, db) in zip(self.pairs, move, strict=True):
            first = min(first, _share(pair.a, da))
            second = min(second, _share(pair.b, db))
        return first, second


def _follow(wanted: Vector, a: Vector, db: Vector, b: Vector) -> Vector:
    """The change of one member of a pair that the change `db` of the other entails."""
    return [(r - x * y) / z for r, x, y, z in zip(wanted, a, db, b, strict=True)]


def _share(values: Vector, changes: Vector) -> float:
    shares = [-v / c for v, c in zip(values, changes, strict=True) if c < -v]
    return min(shares, default=1.0)
