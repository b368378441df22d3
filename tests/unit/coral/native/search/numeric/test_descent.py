"""Constrained descent on small unrelated problems: it knows nothing of any of them."""

import math
from math import inf

import pytest
from native_problems import differences, problem, rosenbrock

from coral.native.search.numeric.descent import LOOKED_BACK, Descent
from coral.native.search.numeric.problem import OptimizationProblem
from coral.public_check.candidate import Measurement
from coral.search_space.space import SearchSpace


def descend(function, start, maximize=False):
    task = problem(function, start, maximize)
    return Descent(task, differences(task), precision=1e-12).run(task.measured(task.space.start))


@pytest.mark.parametrize("count", [2, 10, pytest.param(80, marks=pytest.mark.slow)])
def test_a_curved_valley_is_followed_to_its_end(count):
    assert descend(rosenbrock, [-1.2, 1.0] * (count // 2)).measurement.score < 1e-6


def test_an_optimum_on_curved_constraints_is_strictly_feasible():
    found = descend(lambda x: ((x[0] - 2) ** 2 + (x[1] - 1) ** 2, [1 - x[0] ** 2 - x[1] ** 2]), [0.1, 0.2])
    assert found.point == pytest.approx([2 / math.sqrt(5), 1 / math.sqrt(5)], abs=1e-4)
    assert found.measurement.worst > 0


def test_an_objective_that_grows_steep_is_held_back():
    """The penalty of a violation that was fair at the start is far too low at the optimum."""
    found = descend(lambda x: (x[0] ** 4, [2 - x[0]]), [0.1], maximize=True)
    assert found.measurement.feasible
    assert found.point[0] == pytest.approx(2.0, abs=1e-9)


def test_an_infeasible_start_is_made_feasible():
    """Hock and Schittkowski 71 with its equation as an inequality, from outside."""

    def function(x):
        slack = [x[0] * x[1] * x[2] * x[3] - 25, 40 - sum(v * v for v in x)]
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], slack + [v - 1 for v in x] + [5 - v for v in x]

    found = descend(function, [1.0, 5.0, 5.5, 0.5])
    assert found.measurement.feasible
    assert found.measurement.score == pytest.approx(17.014, abs=1e-3)


def test_points_that_cannot_be_measured_are_no_obstacle():
    found = descend(lambda x: x[0] - math.log(x[0]) + (x[1] - 3) ** 2, [5.0, 0.0001])
    assert found.point == pytest.approx([1.0, 3.0], abs=1e-3)


def test_declared_bounds_hold():
    space = SearchSpace({"p.cfg": "x = 0.5 # range: 0..2\ny = 0.5 # range: -1..1\n"})

    def check(candidates):
        values = [[float(line.split()[2]) for line in texts["p.cfg"].splitlines()] for texts in candidates]
        assert all(0 <= x <= 2 and -1 <= y <= 1 for x, y in values)
        return [Measurement(x + y) for x, y in values]

    task = OptimizationProblem(space, check, True)
    found = Descent(task, differences(task)).run(task.measured(space.start))
    assert found.point == pytest.approx([2.0, 1.0], abs=1e-6)


def test_a_descent_without_hope_to_beat_a_cost_is_given_up():
    task = problem(rosenbrock, [-1.2, 1.0] * 4)
    start = task.measured(task.space.start)
    hopeless = Descent(task, differences(task), target=-1e9)
    hopeless.run(start)
    assert hopeless.steps == LOOKED_BACK


@pytest.mark.parametrize("start", [[-1.2, 1.0], [-1.2, 1.0] * 2, [0.0] * 4, [-1.0] * 4])
def test_a_step_that_gains_little_does_not_end_the_descent_of_a_valley(start):
    task = problem(rosenbrock, start)
    reached = Descent(task, differences(task), target=1e-3).run(task.measured(start))
    assert reached.measurement.score < 1e-3


@pytest.mark.parametrize("count", [2, 8, pytest.param(40, marks=pytest.mark.slow)])
def test_one_step_that_gains_less_than_the_precision_is_no_optimum(count):
    """Of this cost the precision is a thousandth, which single steps along the valley do not gain."""
    task = problem(lambda x: 1000 + rosenbrock(x), [-1.2, 1.0] * (count // 2))
    reached = Descent(task, differences(task), precision=1e-6).run(task.measured(task.space.start))
    assert reached.measurement.score < 1000 + 1e-5


def test_the_precision_is_of_the_cost_that_is_reached_and_not_of_the_first():
    def steep(x):
        return 1e4 * sum(v**6 for v in x[:3]) + rosenbrock(x[3:])

    task = problem(steep, [30.0, 20.0, 10.0, -1.2, 1.0, -1.2])
    start = task.measured(task.space.start)
    assert start.measurement.score > 1e12
    assert Descent(task, differences(task)).run(start).measurement.score < 1e-3


def test_curvature_is_followed_to_an_optimum_on_a_constraint():
    task = problem(lambda x: ((x[0] - 2) ** 2 + (x[1] - 1) ** 2, [1 - x[0] ** 2 - x[1] ** 2]), [0.1, 0.2])
    start, method = task.measured(task.space.start), differences(task)
    method.model(start, inf)  # as the steps before would have
    found = Descent(task, method, precision=1e-12, penalty=10.0)._follow_curvature(start)
    assert found.point == pytest.approx([2 / math.sqrt(5), 1 / math.sqrt(5)], abs=1e-6)


def test_a_position_is_measured_once_whatever_scipy_asks_of_it():
    asked = []

    def function(x):
        asked.append(tuple(x))
        return rosenbrock(x)

    assert descend(function, [-1.2, 1.0, 0.5]).measurement.score < 1e-6
    assert len(set(asked[:100])) == 100, "only in the last digits it returns to where it was"


@pytest.mark.parametrize("bound", [1e-4, 0.01])
def test_a_bound_that_begins_small_does_not_shorten_the_steps(bound):
    """The objective is a bound on distances, and its first value says nothing of how far these can grow."""
    points = [[0.2, 0.3], [0.25, 0.35], [0.3, 0.2], [0.6, 0.7], [0.5, 0.5]]

    def least_distance(data):
        slack = [gap for x, y in data["points"] for gap in (x, 1 - x, y, 1 - y)]
        distances = [math.dist(a, b) for k, a in enumerate(data["points"]) for b in data["points"][:k]]
        return data["bound"], slack + [distance - data["bound"] for distance in distances]

    found = descend(least_distance, {"bound": bound, "points": points}, maximize=True)
    assert found.measurement.feasible
    assert found.measurement.score > 0.6
