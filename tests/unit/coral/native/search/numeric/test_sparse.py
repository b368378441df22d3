"""Sparse symmetric systems: an order that keeps linked unknowns close, and factors that solve."""

from random import Random

import pytest

from coral.native.search.numeric.sparse import NormalMatrix, SparseRow, nearby_order


def test_the_factors_solve_a_sparse_system():
    random = Random(3)
    rows = [SparseRow((k, (k + 5) % 12), (random.gauss(0, 1), random.gauss(0, 1))) for k in range(12) if k != 7]
    rows = [SparseRow(*zip(*sorted(zip(row.columns, row.values, strict=True)), strict=True)) for row in rows]
    base = [[float(i == j) for j in range(12)] for i in range(12)]
    for curvature in (None, base):
        weights, diagonal = [random.random() for _ in rows], [1 + random.random() for _ in range(12)]
        matrix = NormalMatrix(12, rows, curvature)
        matrix.factor(diagonal, weights)
        right = [random.gauss(0, 1) for _ in range(12)]
        x = matrix.solve(right)
        back = [d * v + (v if curvature else 0.0) for d, v in zip(diagonal, x, strict=True)]
        for row, weight in zip(rows, weights, strict=True):
            for column, value in zip(row.columns, row.values, strict=True):
                back[column] += weight * value * row.dot(x)
        assert back == pytest.approx(right)


def test_the_unknowns_of_a_chain_are_put_side_by_side():
    links = [(0, 4), (4, 2), (2, 5), (5, 1), (1, 3)]
    order = nearby_order(6, links)
    position = {unknown: k for k, unknown in enumerate(order)}
    assert sorted(order) == list(range(6))
    assert all(abs(position[a] - position[b]) == 1 for a, b in links)
