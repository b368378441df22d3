"""The evolution strategy needs only the order of the candidates."""

import math
from random import Random

import pytest
from native_problems import problem

from coral.native.search.numeric.descent import Descent
from coral.native.search.numeric.evolution import (
    CONTRACTED,
    LARGE,
    LOCAL_SHARE,
    Evolution,
    load_evolution,
    save_evolution,
)
from coral.native.search.numeric.finite_differences import FiniteDifferences
from coral.native.search.numeric.problem import TimeUp


def rough(x):
    return sum(v * v for v in x) + 0.2 * math.floor(5 * abs(x[0]))


def waves(x):
    """Rastrigin's function, with optima at all whole numbers."""
    return sum(10.0 + v * v - 10.0 * math.cos(2 * math.pi * v) for v in x)


def begun(at, function=rough):
    task = problem(function, at)
    evolution = Evolution(range(len(at)), task.space.start, task.space.scales([task.space.start]))
    evolution.begin(task.space.start, Random(1))
    return task, evolution


def test_a_rough_surface_is_overcome():
    task, evolution = begun([3.0, -2.0, 4.0])
    assert evolution.run(task).measurement.score < 1e-6
    assert evolution.ended


def test_a_run_ends_once_its_candidates_differ_in_the_last_digits_alone():
    task, evolution = begun([3.0, -2.0, 4.0], function=lambda x: 5.0 + sum(v * v for v in x))
    assert 1e-10 < evolution.run(task).measurement.score - 5.0 < 1e-5
    assert evolution.ended


def descent_in(task):
    """The local search that an episode hands to an evolution, and where each began and ended."""
    scales = task.space.scales([task.space.start])
    differences, led = FiniteDifferences(task, task.space.reals, scales, Random(1)), []

    def descend(start):
        led.append((start, Descent(task, differences, precision=1e-6).run(start)))
        return led[-1][1]

    return descend, led


def test_local_searches_from_the_mean_find_the_optimum_long_before_the_population_does():
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)
    evolution.begin(task.space.start, Random(1), 5)
    alone = evolution.run(task).measurement.score
    without = task.evaluations
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)
    evolution.begin(task.space.start, Random(1), 5)
    descend, led = descent_in(task)
    before = task.evaluations
    assert evolution.run(task, descend).measurement.score == pytest.approx(alone, abs=1e-6)
    assert task.evaluations < without / 2
    spent = task.evaluations - before
    assert evolution.by_local_searches < 0.3 * (spent - evolution.by_local_searches)  # the last may exceed a fifth
    # The last four led to the same optimum, which ended the run.
    assert evolution.ended
    assert all(one.point == pytest.approx(led[-1][1].point, abs=1e-3) for _, one in led[-4:])
    # The next run begins anew.
    evolution.begin(task.space.start, Random(2))
    assert (evolution.by_local_searches, evolution.optimum) == (0, None)


def test_no_local_search_begins_before_the_population_has_contracted():
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)
    first, descent, widths = float(evolution.strategy.stds.mean()), descent_in(task)[0], []

    def descend(start):
        widths.append(float(evolution.strategy.stds.mean()))
        return descent(start)

    evolution.run(task, descend)
    assert widths
    assert max(widths) <= CONTRACTED * first


def test_local_searches_that_find_nothing_are_made_less_often():
    def evaluations(function):
        task, evolution = begun([3.0, -2.0, 4.0, 1.0, 0.5], function=function)
        evolution.begin(task.space.start, Random(1), 5)
        descend, led = descent_in(task)
        evolution.run(task, descend)
        by_populations = task.evaluations - evolution.by_local_searches
        return evolution.by_local_searches / by_populations, evolution.poor_local_searches / len(led)

    def stairs(x):
        """Whose slopes lead away from the optimum."""
        return 1.0 + sum(math.floor(5 * abs(v)) - 0.1 * abs(v) for v in x)

    gained, missed = evaluations(waves), evaluations(stairs)
    assert missed[1] > gained[1]
    assert missed[0] < 0.8 * gained[0]


def test_a_local_search_that_is_cut_off_counts():
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)

    def cut_off(start):
        task.evaluate(*[start.point] * 9)
        raise TimeUp

    with pytest.raises(TimeUp):
        evolution.run(task, cut_off)
    assert evolution.by_local_searches == 10


def test_a_local_search_that_stays_where_it_began_ends_no_run():
    task, evolution = begun([3.0, -2.0, 4.0])
    assert evolution.run(task, lambda start: start).measurement.score < 1e-6


def test_populations_double_up_to_the_largest():
    task, evolution = begun([3.0, -2.0, 4.0])
    sizes = [evolution.strategy.popsize]
    for doublings, most in ((1, math.inf), (2, math.inf), (3, 30)):
        evolution.begin(task.space.start, Random(2), doublings, most)
        sizes.append(evolution.strategy.popsize)
    assert sizes == [7, 14, 28, 30]


def test_populations_grow_while_the_largest_finds_the_best_and_share_the_evaluations_otherwise():
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)
    begun_with = [evolution.doublings]
    for k in range(1, 12):
        evolution.run(task)
        best = evolution.best
        begun_with.append(evolution.next_doublings())
        if evolution.best_doublings == max(begun_with[:-1]):
            assert begun_with[-1] == max(begun_with[:-1]) + 1
        else:
            spent = evolution.evaluations
            assert spent[begun_with[-1]] == min(spent.values())
        evolution.begin(task.space.start, Random(k), begun_with[-1])
        assert evolution.best == best
    assert 1 < max(begun_with) < 11
    assert sorted(begun_with) != begun_with


def test_an_evolution_with_large_populations_comes_back_to_the_small_ones():
    task, evolution = begun([3.0, -2.0, 4.0])
    evolution.large = True
    evolution.run(task)
    assert evolution.next_doublings() == LARGE
    evolution.evaluations[LARGE] = 1000  # whose run has found nothing better
    assert evolution.next_doublings() == 1


def test_no_local_search_begins_where_one_like_the_last_takes_more_than_its_share():
    task, evolution = begun([3.4, -2.3, 4.2, 1.6], function=waves)
    shares = []

    def descend(start):
        """Take 200 evaluations and find nothing."""
        if shares:
            shares.append((evolution.by_local_searches + 200) / evolution.strategy.countevals)
        else:
            shares.append(0.0)  # how long it takes is not known before the first
        task.evaluate(*[[9.0] * 4] * 200)
        return task.measured([9.0] * 4)

    evolution.begin(task.space.start, Random(1), 5)
    evolution.run(task, descend)
    assert len(shares) > 1
    assert all(share <= LOCAL_SHARE / (1 + poor) for poor, share in enumerate(shares))


def test_a_run_that_was_cut_off_goes_on_in_the_next_episode(tmp_path):
    task, evolution = begun([3.0, -2.0, 4.0])
    task.deadline, measure = math.inf, task.check

    def ends_after_a_while(candidates):
        task.deadline = -math.inf if task.evaluations > 60 else math.inf
        return measure(candidates)

    task.check = ends_after_a_while
    with pytest.raises(TimeUp):
        evolution.run(task)
    save_evolution(tmp_path / "kept", evolution, "a")
    task, _ = begun([3.0, -2.0, 4.0])
    kept = load_evolution(tmp_path / "kept", range(3), 3, "a")
    assert kept is not None
    assert kept.strategy.countiter == evolution.strategy.countiter > 5
    assert kept.run(task).measurement.score < 1e-6
    assert load_evolution(tmp_path / "kept", range(2), 3, "a") is None  # the files have another form now
    assert load_evolution(tmp_path / "kept", range(3), 3, "b") is None
    assert load_evolution(tmp_path / "none", range(3), 3, "a") is None
    del kept.optimum  # as of a version that had no such field
    save_evolution(tmp_path / "other", kept, "a")
    assert load_evolution(tmp_path / "other", range(3), 3, "a") is None
    kept.optimum, kept.former = None, 0  # as of a version that had one more
    save_evolution(tmp_path / "other", kept, "a")
    assert load_evolution(tmp_path / "other", range(3), 3, "a") is None
    for damaged in (b"damaged", b"h\x05.", b"\x95\xff\xff\xff\xff\xff\xff\xff\xff.", b"L9x.", b"cos\nnone\n."):
        (tmp_path / "kept").write_bytes(damaged)
        assert load_evolution(tmp_path / "kept", range(3), 3, "a") is None


def test_a_small_population_that_was_cut_off_goes_on_like_any_other(tmp_path):
    """cma would reflect some points of a population below six; it loses one when its generation is cut off."""
    task = problem(rough, [3.0, -2.0])
    evolution = Evolution(range(2), task.space.start, [1.0, 1.0])
    evolution.begin(task.space.start, Random(1), most=5)
    evolution._make_generation(task)
    task.deadline = -math.inf
    with pytest.raises(TimeUp):
        evolution.run(task)
    save_evolution(tmp_path / "kept", evolution, "a")
    task, _ = begun([3.0, -2.0])
    kept = load_evolution(tmp_path / "kept", range(2), 2, "a")
    for _ in range(6):
        kept._make_generation(task)
    assert kept.strategy.countiter == 7
