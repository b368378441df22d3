"""What the brain sees of the fleet from one agent's place in it, and which calls chain into the next step."""

from native_situations import known, situation
from sample import attempt

import coral.native.situation as situation_module
from coral.native.situation import AwaitResult, Call, Search, Submit


def test_the_own_best_and_the_best_of_others_are_told_apart():
    met = situation(attempts=known(attempt(0, 1.0), attempt(1, 3.0), attempt(2, 2.0)))
    own, best = met.own_best, met.fleet_best
    assert own is not None
    assert best is not None
    assert (own.number, best.number) == (2, 1)


def test_searches_and_submissions_chain_and_nothing_else():
    calls = [kind for kind in vars(situation_module).values() if isinstance(kind, type) and issubclass(kind, Call)]
    chaining = {kind for kind in calls if kind.__dataclass_fields__["request_heartbeat"].default}
    assert chaining == {Search, Submit, AwaitResult}
