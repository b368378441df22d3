"""Which family has paid: counts that decay, and a choice that follows them."""

from dataclasses import replace
from random import Random

from native_situations import trial

from attempts.record import Direction
from coral.native.search.bandit import DECAY, Counts, counts_of, gain, is_win, sample_family

WON, LOST = (trial(2, "rows", 1.0, 1.5), trial(2, "shake", 1.0, 0.5)), trial(4, "rows", 1.0, 0.5)


def drawn(own: Counts, shared: Counts, times: int = 200) -> list[str]:
    return [sample_family(["rows", "shake"], own, shared, Random(k)) for k in range(times)]


def test_the_choice_follows_what_pays_and_forgets():
    paid = counts_of(WON * 12, Direction.MAXIMIZE)
    assert drawn(paid, {}, 100).count("rows") > 90
    assert drawn(counts_of([*WON * 12, *[LOST] * 40], Direction.MAXIMIZE), {}, 100).count("rows") < 90


def test_the_experience_of_others_makes_a_family_likelier():
    assert drawn({}, {"shake": (30.0, 30.0)}).count("shake") > drawn({}, {}).count("shake") + 20


def test_old_tries_weigh_little():
    assert counts_of([LOST] * 500, Direction.MAXIMIZE)["rows"][0] < 20


def test_trials_are_counted_by_family_and_void_ones_are_not():
    trials = [trial(2, "rows", 1.0, 1.5), trial(4, "rows", 1.5, 1.2), trial(6, "rows", 1.5, None, verdict="void")]
    nothing = replace(trial(8, "shake", 1.5, None), number=None, verdict="")
    counted = {"rows": (1.0 + DECAY, DECAY), "shake": (1.0, 0.0)}
    assert counts_of([*trials, nothing], Direction.MAXIMIZE) == counted
    assert counts_of(trials, Direction.MINIMIZE) == {"rows": (1.0 + DECAY, 1.0)}


def test_a_gain_has_the_direction_of_the_task_and_rounding_is_no_win():
    assert gain(1.0, 1.5, Direction.MINIMIZE) == -0.5
    assert gain(1.0, 1.5, Direction.MAXIMIZE) == 0.5
    assert gain(None, 1.5, Direction.MAXIMIZE) == 0.0
    assert is_win(2.0, 2.0 + 1e-6, Direction.MAXIMIZE)
    assert not is_win(2.0, 2.0 - 1e-6, Direction.MAXIMIZE)
    assert not is_win(2.0, 2.0 - 1e-10, Direction.MINIMIZE)
    assert not is_win(None, 2.0, Direction.MAXIMIZE)
