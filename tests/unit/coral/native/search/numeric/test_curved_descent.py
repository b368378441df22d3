"""Descent by the methods of scipy, which ask about positions one by one."""

import math
from math import inf

import pytest
from native_problems import differences, problem, rosenbrock

from coral.native.search.numeric.curved_descent import follow_curvature


def follow(task, is_hopeless=lambda steps, merit, gained: False):
    start, method = task.measured(task.space.start), differences(task)
    if start.measurement.slack:
        method.model(start.point, start.measurement, inf)  # as the steps before would have
    return follow_curvature(method, start, lambda at: task.merit(at.measurement, 10.0), 1e-12, is_hopeless)


def test_an_optimum_on_a_curved_constraint_is_found():
    found = follow(problem(lambda x: ((x[0] - 2) ** 2 + (x[1] - 1) ** 2, [1 - x[0] ** 2 - x[1] ** 2]), [0.1, 0.2]))
    assert found.point == pytest.approx([2 / math.sqrt(5), 1 / math.sqrt(5)], abs=1e-6)


def test_a_position_is_measured_once_whatever_is_asked_of_it():
    asked = []

    def function(x):
        asked.append(tuple(x))
        return rosenbrock(x)

    assert follow(problem(function, [-1.2, 1.0, 0.5])).measurement.score < 1e-6
    assert len(set(asked[:100])) == 100, "only in the last digits it returns to where it was"


def test_it_ends_when_nothing_is_hoped_for_any_more():
    steps = []

    def is_hopeless(count, merit, gained):
        steps.append(count)
        return count == 3

    follow(problem(rosenbrock, [-1.2, 1.0] * 4), is_hopeless)
    assert steps == [1, 2, 3]
