"""A situation: what the brain sees of the fleet from one agent's place in it."""

from native_situations import known, situation
from sample import attempt

from coral.native.situation import Idle, Signal


def test_the_own_best_and_the_best_of_others_are_told_apart():
    met = situation(attempts=known(attempt(0, 1.0), attempt(1, 3.0), attempt(2, 2.0)))
    own, best = met.own_best, met.fleet_best
    assert own is not None
    assert best is not None
    assert (own.number, best.number, [other.number for other in met.best_of_others]) == (2, 1, [1])


def test_what_follows_from_a_signal_stands_one_deeper():
    assert Signal(Idle(), 2).then(Idle()) == Signal(Idle(), 3)
