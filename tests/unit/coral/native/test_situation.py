"""What the brain sees of the fleet from one agent's place in it."""

from native_situations import known, situation
from sample import attempt


def test_the_own_best_and_that_of_the_fleet_are_different_ones():
    met = situation(attempts=known(attempt(0, 1.0), attempt(1, 3.0), attempt(2, 2.0)))
    own, best = met.own_best, met.fleet_best
    assert own is not None
    assert best is not None
    assert (own.number, best.number) == (2, 1)
