"""The search by a surrogate finds optima that a noisy check hides from differences of two measurements."""

from itertools import pairwise
from random import Random

import pytest
from native_problems import problem

from coral.native.search.numeric import surrogate
from coral.native.search.numeric.problem import TimeUp
from coral.native.search.numeric.surrogate import SurrogateSearch


def noisy(function, size, seed=1):
    noise = Random(seed)
    return lambda x: function(x) + noise.gauss(0.0, size)


def search(task, indices=None, most=20_000):
    """Search until the end, or `most` measurements; return the end, and the centres."""
    centres = []
    asked = task.check

    def counted(texts):
        if task.evaluations > most:
            raise TimeUp
        return asked(texts)

    task.check = counted
    start, scales = task.measured(task.space.start), task.space.scales([task.space.start])
    try:
        reals = task.space.reals if indices is None else indices
        found = SurrogateSearch(task, start, reals, scales, centres.append).run(Random(2))
    except TimeUp:
        found = centres[-1]
    return found, centres


def bowl(x):
    return sum((a - 0.5) ** 2 for a in x)


def tilted(x):
    """Return a bowl whose axes lie across those of the variables, and whose least value is 0 at 0.5."""
    return sum((a - 0.5) ** 2 for a in x) + 10.0 * sum((a - b) ** 2 for a, b in pairwise(x))


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_below_the_noise_is_found(seed):
    """At the start a step of a finite difference changes the cost by less than a thousandth of the noise."""
    found, _ = search(problem(noisy(tilted, 0.3, seed), [2.0, -1.0, 3.0, 1.0]))
    assert tilted(found.point) < 0.02


def test_the_score_is_the_surrogates_and_not_the_luckiest():
    found, centres = search(problem(noisy(tilted, 0.3), [2.0, -1.0, 3.0]))
    assert found.measurement.score == pytest.approx(tilted(found.point), abs=0.1)
    assert centres[-1] == found


def test_a_largest_score_is_sought_where_the_task_maximizes():
    found, _ = search(problem(noisy(lambda x: 7.0 - tilted(x), 0.3), [2.0, -1.0, 3.0], maximize=True))
    assert found.measurement.score == pytest.approx(7.0, abs=0.1)


def test_a_curved_valley_is_followed_though_the_first_fits_are_bad():
    found, _ = search(problem(noisy(lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, 0.05), [-1.0, 1.5]))
    assert abs(found.point[0] - 1.0) < 0.5


def test_bounds_and_other_variables_are_kept():
    task = problem(noisy(tilted, 0.1), {"a": 2.0, "b": 3.0, "c": 1.0}, variables={"a": "1.0 .. 4.0"})
    task.check.function = noisy(lambda data: tilted(list(data.values())), 0.1)
    found, _ = search(task, indices=[0, 1])
    assert found.point[0] == pytest.approx(1.0, abs=0.05)
    assert found.point[0] >= 1.0
    assert found.point[2] == 1.0


def test_points_that_the_check_rejects_are_left_out():
    def half(x):
        if x[0] < 0.0:
            raise ValueError("too small")
        return tilted(x)

    found, _ = search(problem(noisy(half, 0.1), [0.3, 2.0]))
    assert tilted(found.point) < 0.05


def test_where_everything_is_rejected_the_search_ends_where_it_began():
    def rejected(x):
        if x != [2.0, 3.0]:
            raise ValueError("no")
        return 1.0

    found, _ = search(problem(rejected, [2.0, 3.0]))
    assert found.point == [2.0, 3.0]


def test_a_constraint_keeps_its_slack():
    task = problem(lambda x: (noisy(tilted, 0.1)(x), [x[0] - 1.0]), [2.0, 3.0])
    found, _ = search(task)
    assert found.measurement.slack[0] == pytest.approx(found.point[0] - 1.0)
    assert found.point[0] == pytest.approx(1.0, abs=0.3)


def test_no_step_leads_up_where_only_a_linear_function_can_be_fitted(monkeypatch):
    """In a wide box around the optimum it is far above the measurements of the centre, and so is where it leads."""
    monkeypatch.setattr(surrogate, "MOST_TERMS", 12)
    _, centres = search(problem(noisy(bowl, 0.01), [2.0, -1.0, 3.0, 1.0, -2.0, 0.0, 4.0, 2.5]))
    costs = [bowl(centre.point) for centre in centres]
    assert costs[-1] < 2.0
    assert all(after < before + 1.0 for before, after in pairwise(costs))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e300, 1e308, 1e-300])
def test_merits_of_any_size_end_it(size):
    noise = Random(1)
    found, _ = search(problem(lambda _: size * noise.random(), [2.0, 3.0]))
    assert found.measurement.score <= size


def test_an_exact_check_ends_it_too():
    found, _ = search(problem(tilted, [2.0, 3.0]))
    assert tilted(found.point) < 1e-6
