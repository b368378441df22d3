"""Quadratic programs with elastic rows in a box."""

import pytest

from coral.native.search.numeric.qp import QuadraticProgram, solve
from coral.native.search.numeric.sparse import SparseRow


def test_a_linear_program_is_solved_at_its_vertex():
    solution = solve(
        QuadraticProgram(
            gradient=[-2.0, -1.0],
            curvature=None,
            rows=[SparseRow((0, 1), (-1.0, -1.0)), SparseRow((0,), (-1.0,))],  # x + y <= 1, x <= 0.25
            offsets=[1.0, 0.25],
            lower=[-1.0, -1.0],
            upper=[1.0, 1.0],
            penalty=100.0,
        ),
        1e-12,
    )
    assert solution.step == pytest.approx([0.25, 0.75], abs=1e-9)
    assert solution.multipliers == pytest.approx([1.0, 1.0], abs=1e-6)


def test_curvature_moves_the_solution_inside():
    program = QuadraticProgram(
        gradient=[-1.0], curvature=[[2.0]], rows=[], offsets=[], lower=[-1.0], upper=[1.0], penalty=1.0
    )
    assert solve(program, 1e-12).step == pytest.approx([0.5], abs=1e-9)


def test_rows_that_cannot_be_met_are_missed_as_little_as_possible():
    solution = solve(
        QuadraticProgram(
            gradient=[0.0],
            curvature=None,
            rows=[SparseRow((0,), (1.0,)), SparseRow((0,), (-1.0,))],  # x >= 0.5 and x <= -0.1
            offsets=[-0.5, -0.1],
            lower=[-1.0],
            upper=[1.0],
            penalty=5,
        ),
        1e-9,
    )
    assert -0.1 - 1e-6 <= solution.step[0] <= 0.5 + 1e-6
