"""Gradients by finite differences: few measurements, and none for what is known to be linear."""

import pytest
from native_problems import differences, problem

from coral.native.search.numeric.descent import Descent


def test_a_linear_objective_is_differenced_only_once():
    task = problem(lambda x: (sum(x), [1 - v * v for v in x]), [0.1] * 20, maximize=True)
    linear, start = differences(task), task.measured(task.space.start)
    linear.model(start, 1e3)
    before = task.evaluations
    model = linear.model(start, 1e3)
    # No two constraints share a variable: all twenty are stepped at once.
    assert task.evaluations == before + 1
    assert len(model.rows) == 20
    assert model.gradient == pytest.approx([-0.1] * 20)


def test_constraints_that_a_step_cannot_reach_are_left_out():
    task = problem(lambda x: (x[0], [x[0] - 0.9, x[0] + 100]), [1.0])
    start = task.measured(task.space.start)
    assert differences(task).model(start, 0.5).constraints == [0]


def test_a_point_that_cannot_be_measured_upwards_is_stepped_downwards():
    def function(x):
        if x[0] > 1.0 or x[1] > 1.0:
            raise ValueError
        return 3 * x[0] + 2 * x[1] - x[2]

    task = problem(function, [1.0, 1.0, 0.5])
    start = task.measured(task.space.start)
    gradient = differences(task).model(start, 1.0).gradient
    assert gradient == pytest.approx([1.5, 1.0, -0.5], rel=1e-5), "in units of the scale, which is 0.5"


def test_where_the_score_is_rounded_steps_are_longer():
    task = problem(lambda x: round(sum(v * v for v in x), 4), [1.0] * 5)
    found = Descent(task, differences(task)).run(task.measured(task.space.start))
    assert found.measurement.score <= 5e-3


def test_on_a_plateau_steps_stay_as_they_are():
    task = problem(lambda x: 1.0 if abs(x[0]) > 0.5 else x[0] ** 2, [2.0])
    flat = differences(task)
    flat.model(task.measured([2.0]), 1.0)
    before = task.evaluations
    flat.model(task.measured([3.0]), 1.0)
    assert task.evaluations == before + 2
    assert flat.model(task.measured([0.25]), 1.0).gradient == pytest.approx([1.0], rel=1e-5)


def test_where_the_objective_is_linear_and_no_constraint_is_near_nothing_is_measured():
    task = problem(lambda x: (x[0], [x[0] + 100]), [1.0])
    linear, start = differences(task), task.measured(task.space.start)
    linear.model(start, 0.5)
    before = task.evaluations
    assert linear.model(start, 0.5).rows.shape == (0, 1)
    assert task.evaluations == before
