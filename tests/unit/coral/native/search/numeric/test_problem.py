"""The problem: what competes for the best, and time that is up."""

import math
import time

import pytest
from native_problems import problem, rosenbrock

from coral.native.search.numeric.problem import EvaluatedPoint, TimeUp
from coral.public_check.candidate import Measurement


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


def test_the_best_that_differs_from_the_start_is_known():
    task = problem(lambda x: 1 / x[0], [4.0])
    for points, best in ([[4.0], [0.0]], [0.0]), ([[0.5], [4.0], [0.25]], [0.5]):
        task.measure(points)
        assert task.other is not None
        assert task.other.point == best


def test_what_was_measured_before_the_time_is_up_competes_for_the_best():
    now = []

    def slow(x):
        now.append(x[0])
        if len(now) == 3:
            task.deadline = time.monotonic() - 1
        time_passes(task)
        return -x[0]

    def time_passes(task):
        task._measuring += 1.0  # a second for each: one is measured between two looks at the clock

    task = problem(slow, [0.0])
    with pytest.raises(TimeUp):
        task.evaluate([1.0], [5.0], [2.0], [9.0])
    assert task.best is not None
    assert (task.best.point, now) == ([5.0], [1.0, 5.0, 2.0])


def test_a_share_of_the_time_affords_so_many_measurements():
    task = problem(rosenbrock, [1.5, 2.5])
    task.seconds = 5.0
    assert task.affordable(0.1) == math.inf
    task.evaluations, task._measuring = 100, 2.0
    assert task.affordable(0.1) == pytest.approx(25)
    assert task.affordable(0.01) == 4


def test_broken_constraints_cost_a_penalty():
    task = problem(rosenbrock, [1.5, 2.5], maximize=True)
    assert task.merit(Measurement(2.0, [0.5, -0.5, -1.0]), 3.0) == -2.0 + 4.5
    assert task.merit(Measurement(error="no"), 3.0) == math.inf
