"""The problem: what competes for the best, and time that is up."""

import math
import time

import pytest
from native_problems import problem, rosenbrock

from coral.native.search.numeric.problem import EvaluatedPoint, Measurement, TimeUp


def test_time_that_is_up_is_up():
    task = problem(rosenbrock, [1.5, 2.5])
    task.deadline = time.monotonic() - 1
    with pytest.raises(TimeUp):
        task.measure([task.space.start])


def test_nothing_that_breaks_constraints_beats_what_does_not():
    task = problem(lambda x: (x[0], [x[0] - 1]), [0.0])
    bad = EvaluatedPoint([0.0], Measurement(0.0, [-1.0]))
    good = EvaluatedPoint([2.0], Measurement(2.0, [1.0]))
    assert task.rank(good) < task.rank(bad)
    assert task.rank(EvaluatedPoint([0.0], Measurement(error="no"))) == (math.inf, math.inf)


def test_only_evaluated_points_compete_for_the_best():
    task, best = problem(lambda x: 1 / x[0], [4.0]), []
    task.on_new_best = best.append
    task.measured([8.0])
    assert task.best is None
    task.evaluate([4.0], [0.0], [2.0], [5.0])
    assert task.best is not None
    assert [task.best.point, *(point.point for point in best)] == [[5.0], [4.0], [5.0]]


def test_broken_constraints_cost_a_penalty():
    task = problem(rosenbrock, [1.5, 2.5], maximize=True)
    assert task.merit(Measurement(2.0, [0.5, -0.5, -1.0]), 3.0) == -2.0 + 4.5
    assert task.merit(Measurement(error="no"), 3.0) == math.inf
