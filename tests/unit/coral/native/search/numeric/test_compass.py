"""Compass search finds what has no gradient."""

from random import Random

from native_problems import MeasuredLines

from coral.native.search.numeric.compass import search_by_compass
from coral.native.search.numeric.problem import OptimizationProblem
from coral.search_space.space import SearchSpace


def test_integers_choices_and_kinks_are_found():
    space = SearchSpace({"p.cfg": "n = 3\nkind = a # choices: a, b, c\nx = 9.5\n"})

    def cost(n, kind, x):
        return abs(int(n) - 40) + (0 if kind == "c" else 5) + abs(float(x) - 0.5)

    task = OptimizationProblem(space, MeasuredLines(cost), False)
    scales = space.scales([space.start])
    found = search_by_compass(task, task.measured(space.start), range(3), scales, Random(1))
    assert found.point[:2] == [40.0, 2.0]
    assert found.measurement.score < 1e-4
