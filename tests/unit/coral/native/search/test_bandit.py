"""Which family has paid: counts that decay, and a choice that follows them."""

from random import Random

import pytest

from attempts.record import Direction
from coral.native.search.bandit import FamilyStats, gain, is_win, merge_stats, sample_family


def drawn(own: dict[str, FamilyStats], shared: dict[str, FamilyStats], times: int = 200) -> list[str]:
    return [sample_family(["rows", "shake"], own, shared, Random(k)) for k in range(times)]


def test_the_choice_follows_what_pays_and_forgets():
    own = {"rows": FamilyStats(), "shake": FamilyStats()}
    for _ in range(12):
        own["rows"], own["shake"] = own["rows"].add(0.1), own["shake"].add(0.0)
    assert drawn(own, {}, 100).count("rows") > 90
    for _ in range(40):
        own["rows"] = own["rows"].add(0.0)
    assert drawn(own, {}, 100).count("rows") < 90


def test_the_experience_of_others_counts_a_little():
    shared = merge_stats(
        [{"shake": FamilyStats(30.0, 30.0, 1.0)}, {"shake": FamilyStats(2.0, 0.0), "rows": FamilyStats(30.0, 0.0)}]
    )
    assert shared["shake"] == FamilyStats(32.0, 30.0, 1.0)
    assert drawn({}, shared).count("shake") > drawn({}, {}).count("shake") + 40


def test_wins_of_others_make_a_family_likelier():
    shared = {"shake": FamilyStats(30.0, 30.0, 1.0)}
    assert drawn({}, shared).count("shake") > drawn({}, {}).count("shake") + 20


def test_old_tries_weigh_little():
    stats = FamilyStats()
    for _ in range(500):
        stats = stats.add(0.0)
    assert stats.tries < 20


@pytest.mark.parametrize(
    "data", [{}, {"tries": "x"}, {"tries": -1, "wins": 2}, {"tries": 2, "wins": 9}, {"tries": 1e30}]
)
def test_counts_from_a_file_are_never_nonsense(data):
    stats = FamilyStats.from_dict(data)
    assert 0 <= stats.wins <= stats.tries


def test_a_gain_has_the_direction_of_the_task_and_rounding_is_no_win():
    assert gain(1.0, 1.5, Direction.MINIMIZE) == -0.5
    assert gain(1.0, 1.5, Direction.MAXIMIZE) == 0.5
    assert gain(None, 1.5, Direction.MAXIMIZE) == 0.0
    assert is_win(1e-6, 2.0)
    assert not is_win(1e-10, 2.0)
