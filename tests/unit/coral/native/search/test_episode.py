"""An episode of search ends in time, and always with a candidate."""

import math
import time
from random import Random

import pytest
from native_problems import EIGHT_POINTS, problem, repelling_points, rosenbrock

from coral.native.search.episode import Episode, EpisodePlan
from coral.native.search.families import FAMILIES


def plan(family, start, seconds, **fields):
    return EpisodePlan(**{"family": family, "start": start, "chain": start, "others": [], "seconds": seconds, **fields})


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if not family.needs_others])
def test_every_family_brings_a_better_candidate(family):
    task = problem(repelling_points, EIGHT_POINTS)
    reports = []
    episode = Episode(
        task, plan(family, task.space.start, 0.3), Random(2), lambda text, share: reports.append((text, share))
    )
    found = episode.run()
    assert found.candidate.point != task.space.start
    assert found.candidate.measurement.feasible
    assert found.candidate.measurement.score < found.start.measurement.score
    assert found.seconds < 2
    assert all(0 <= share <= 1 for _, share in reports)


def test_at_an_optimum_the_next_best_is_the_candidate():
    """Else stagnation could not be seen: the same result again would look like an attempt that changed nothing."""

    def function(x):
        return sum(v * v - 3 * math.cos(5 * v) for v in x), [9 - v * v for v in x]

    task = problem(function, [2.4, -1.3, 0.1])
    best = [1e-9, 1e-9, 1e-9]
    again = Episode(task, plan("jump", best, 0.4, known=[task.space.start]), Random(2), lambda *_: None).run().candidate
    assert again.measurement.feasible
    assert again.measurement.score > -9 + 1e-3


def test_an_episode_ends_in_time_however_slow_the_check_is(monkeypatch):
    """By a clock that the check alone moves: how slow the machine is makes no difference."""
    now = [1000.0]

    def slow(x):
        now[0] += 0.02
        return rosenbrock(x)

    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now[0])
        task = problem(slow, [-1.2, 1.0] * 20)
        episode = Episode(task, plan("descent", task.space.start, 0.5), Random(2), lambda *_: None, began=now[0])
        found = episode.run()
    assert found.moves + found.evaluations > 2
    assert found.seconds < 1
