"""The BFGS matrix: it learns a curvature, and stays positive definite whatever it is shown."""

import pytest

from coral.native.search.numeric.curvature import Curvature


def test_the_curvature_of_a_parabola_is_learned():
    curvature = Curvature(2)
    for _ in range(3):
        curvature.update([1.0, 0.0], [4.0, 0.0])
        curvature.update([0.0, 1.0], [0.0, 2.0])
    assert curvature.matrix is not None
    assert curvature.matrix[0] == pytest.approx([4.0, 0.0])
    assert curvature.matrix[1] == pytest.approx([0.0, 2.0])


def test_negative_curvature_is_damped():
    curvature = Curvature(1)
    curvature.update([1.0], [-1.0])
    assert curvature.matrix is None, "nothing is known yet, and this is no beginning"
    curvature.update([1.0], [1.0])
    curvature.update([1.0], [-5.0])
    assert curvature.matrix is not None
    assert curvature.matrix[0][0] > 0.0


def test_a_step_of_no_length_changes_nothing():
    curvature = Curvature(1)
    curvature.update([0.0], [1.0])
    assert curvature.matrix is None
