"""The evolution strategy needs only the order of the candidates."""

import math
from random import Random

from native_problems import problem

from coral.native.search.numeric.evolution import evolve


def test_a_rough_surface_is_overcome():
    def rough(x):
        return sum(v * v for v in x) + 0.2 * math.floor(5 * abs(x[0]))

    task = problem(rough, [3.0, -2.0, 4.0])
    scales = task.space.scales([task.space.start])
    found = evolve(task, task.measured(task.space.start), range(3), scales, Random(1))
    assert found.measurement.score < 1e-6
