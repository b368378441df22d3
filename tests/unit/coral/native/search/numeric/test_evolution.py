"""The evolution strategy needs only the order of the candidates."""

import math
from random import Random

import pytest
from native_problems import problem

from coral.native.search.numeric.evolution import LARGE, SMALL, Evolution, load_evolution, save_evolution
from coral.native.search.numeric.problem import TimeUp


def rough(x):
    return sum(v * v for v in x) + 0.2 * math.floor(5 * abs(x[0]))


def begun(at, kind=LARGE):
    task = problem(rough, at)
    evolution = Evolution(range(len(at)), task.space.start, task.space.scales([task.space.start]))
    evolution.begin(task.space.start, kind, Random(1))
    return task, evolution


def test_a_rough_surface_is_overcome():
    task, evolution = begun([3.0, -2.0, 4.0])
    assert evolution.run(task).measurement.score < 1e-6
    assert evolution.ended


def test_populations_double_and_small_runs_get_as_many_evaluations():
    task, evolution = begun([3.0, -2.0, 4.0])
    sizes = [evolution.strategy.popsize]
    evolution.run(task)
    for _ in range(4):
        kind = evolution.next_kind()
        evolution.begin(task.space.start, kind, Random(2))
        sizes += [evolution.strategy.popsize] if kind == LARGE else []
        evolution.run(task)
    assert sizes[1] == 2 * sizes[0]
    assert min(evolution.spent) > 0
    evolution.spent[SMALL] = evolution.spent[LARGE]
    assert evolution.next_kind() == LARGE


def test_a_run_that_was_cut_off_goes_on_in_the_next_episode(tmp_path):
    task, evolution = begun([3.0, -2.0, 4.0])
    task.deadline, measure = math.inf, task.check

    def ends_after_a_while(candidates):
        task.deadline = -math.inf if task.evaluations > 60 else math.inf
        return measure(candidates)

    task.check = ends_after_a_while
    with pytest.raises(TimeUp):
        evolution.run(task)
    save_evolution(tmp_path / "kept", evolution)
    task, _ = begun([3.0, -2.0, 4.0])
    kept = load_evolution(tmp_path / "kept", range(3), 3)
    assert kept is not None
    assert kept.strategy.countiter == evolution.strategy.countiter > 5
    assert kept.run(task).measurement.score < 1e-6
    assert load_evolution(tmp_path / "kept", range(2), 3) is None  # the files have another form now
    assert load_evolution(tmp_path / "none", range(3), 3) is None
    (tmp_path / "kept").write_bytes(b"damaged")
    assert load_evolution(tmp_path / "kept", range(3), 3) is None
