"""Local search over mixed variables: gradients where they are affordable, compass search for the rest."""

from random import Random

from native_problems import MeasuredLines, problem, rosenbrock

from coral.native.search.local_search import LocalSearch
from coral.native.search.numeric.problem import OptimizationProblem
from coral.native.search.numeric.space import SearchSpace


def local_search(task: OptimizationProblem, seconds: float = 1.0) -> LocalSearch:
    return LocalSearch.of(task, task.space.start, [], [], Random(1), seconds)


def test_reals_and_choices_are_searched_by_turns():
    space = SearchSpace({"p.cfg": "kind = a # choices: a, b\nx = 9.5\n"})
    task = OptimizationProblem(space, MeasuredLines(lambda kind, x: (float(x) - 2) ** 2 + 5 * (kind == "a")), False)
    found = local_search(task).optimize(task.measured(space.start), target=None)
    assert found.point[0] == 1.0
    assert found.measurement.score < 1e-6


def test_a_check_that_is_too_slow_for_gradients_is_searched_without_them():
    task = problem(rosenbrock, [1.5, 2.5])
    task.evaluations, task._measuring = 2, 1.0  # a second for each measurement
    assert local_search(task).differences is None
    assert local_search(task, seconds=60.0).differences is not None


def test_a_point_that_cannot_be_measured_is_returned_as_it_is():
    task = problem(lambda x: 1 / x[0], [0.0])
    start = task.measured(task.space.start)
    assert local_search(task).optimize(start, target=None) is start
    assert local_search(task).polish(start) is start
