"""Sparse rows, and the solution of symmetric positive definite systems whose entries lie near the diagonal.

A matrix is kept by envelope: row i holds the entries from its first non-zero column to the diagonal. An ordering that
keeps linked unknowns close (reverse Cuthill-McKee) makes the envelope narrow, and a narrow envelope is what makes
plain Python fast enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import mul

TINY_PIVOT = 1e-30

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class SparseRow:
    """One sparse row: `values[k]` stands in column `columns[k]`; columns ascend."""

    columns: tuple[int, ...]
    values: tuple[float, ...]

    def dot(self, x: Sequence[float]) -> float:
        product: float = sum(map(mul, self.values, [x[c] for c in self.columns]))
        return product

    def size(self) -> float:
        """The sum of magnitudes: how far the row can move when no unknown moves by more than one."""
        return sum(map(abs, self.values))


def nearby_order(count: int, cliques: Iterable[Sequence[int]]) -> list[int]:
    """An order of `count` unknowns that keeps the members of each clique close (reverse Cuthill-McKee)."""
    linked: list[set[int]] = [set() for _ in range(count)]
    for clique in cliques:
        for unknown in clique:
            linked[unknown].update(clique)
    order: list[int] = []
    seen = [False] * count
    for start in sorted(range(count), key=lambda u: len(linked[u])):
        if seen[start]:
            continue
        seen[start] = True
        head = len(order)
        order.append(start)
        while head < len(order):
            fresh = sorted((u for u in linked[order[head]] if not seen[u]), key=lambda u: len(linked[u]))
            for unknown in fresh:
                seen[unknown] = True
            order.extend(fresh)
            head += 1
    order.reverse()
    return order


def _inverse(order: Sequence[int]) -> list[int]:
    """The position of each unknown in an order."""
    positions = [0] * len(order)
    for position, unknown in enumerate(order):
        positions[unknown] = position
    return positions


@dataclass(slots=True)
class Envelope:
    """The shape of a symmetric matrix of which `cliques` are the groups of unknowns that meet in one product."""

    order: list[int]  # position -> unknown
    first: list[int]  # position -> first column of its row

    @classmethod
    def of(cls, count: int, cliques: Sequence[Sequence[int]]) -> Envelope:
        order = nearby_order(count, cliques)
        position_of = _inverse(order)
        first = list(range(count))
        for clique in cliques:
            positions = [position_of[unknown] for unknown in clique]
            lowest = min(positions, default=0)
            for position in positions:
                first[position] = min(first[position], lowest)
        return cls(order, first)


class NormalMatrix:
    """`base + diagonal + sum of weight_k * row_k * row_k'`, formed and factored again and again for one set of rows."""

    def __init__(self, count: int, rows: Sequence[SparseRow], base: Matrix | None = None) -> None:
        cliques: list[Sequence[int]] = [row.columns for row in rows]
        self._shape = Envelope.of(count, cliques if base is None else [range(count)])
        position_of = _inverse(self._shape.order)
        start, self._starts = 0, []
        for position, first in enumerate(self._shape.first):
            self._starts.append(start - first)  # so that entry (i, j) stands at starts[i] + j
            start += position - first + 1
        self._base = [0.0] * start
        if base is not None:
            for i, unknown in enumerate(self._shape.order):
                for j in range(i + 1):
                    self._base[self._starts[i] + j] = base[unknown][self._shape.order[j]]
        self._products = [self._products_of(row, position_of) for row in rows]
        self._lower: list[list[float]] = []
        self._inverse_pivots: list[float] = []

    def _products_of(self, row: SparseRow, position_of: list[int]) -> list[tuple[int, float]]:
        """Where each product of two entries of a row stands in the envelope, and its value."""
        entries = sorted((position_of[c], v) for c, v in zip(row.columns, row.values, strict=True))
        return [(self._starts[i] + j, vi * vj) for k, (i, vi) in enumerate(entries) for j, vj in entries[: k + 1]]

    def factor(self, diagonal: Sequence[float], weights: Sequence[float]) -> None:
        """Form the matrix and factor it (Cholesky). Pivots that rounding made vanish are taken as very large."""
        flat = list(self._base)
        for products, weight in zip(self._products, weights, strict=True):
            for entry, value in products:
                flat[entry] += weight * value
        lower: list[list[float]] = []
        inverse: list[float] = []
        firsts = self._shape.first
        begin = 0
        for i, first in enumerate(firsts):
            size = i - first
            row = flat[begin : begin + size]
            pivot = flat[begin + size] + diagonal[self._shape.order[i]]
            begin += size + 1
            for j in range(size):
                other = lower[first + j]
                shift = first - firsts[first + j]
                if shift >= 0:
                    done = sum(map(mul, row[:j], other[shift:]))
                else:
                    done = sum(map(mul, row[-shift:j], other))
                row[j] = (row[j] - done) * inverse[first + j]
            scale = pivot
            pivot -= sum(map(mul, row, row))
            inverse.append(1.0 / sqrt(pivot) if pivot > scale * TINY_PIVOT else 0.0)
            lower.append(row)
        self._lower, self._inverse_pivots = lower, inverse

    def solve(self, right: Sequence[float]) -> list[float]:
        """The solution for one right side, by the last factors."""
        order, firsts = self._shape.order, self._shape.first
        lower, inverse = self._lower, self._inverse_pivots
        x: list[float] = []
        for i, unknown in enumerate(order):
            x.append((right[unknown] - sum(map(mul, lower[i], x[firsts[i] :]))) * inverse[i])
        for i in range(len(order) - 1, -1, -1):
            x[i] = value = x[i] * inverse[i]
            first = firsts[i]
            if value and first < i:
                x[first:i] = [a - value * b for a, b in zip(x[first:i], lower[i], strict=True)]
        out = [0.0] * len(x)
        for i, unknown in enumerate(order):
            out[unknown] = x[i]
        return out
