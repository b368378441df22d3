"""Protected heartbeats survive every request to remove, rename, empty or starve them; intervals only get shorter."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, setting

from coral.fleet import events as on
from coral.fleet.run_state import FLEET
from heartbeats.heartbeat import BUILT_IN, Heartbeat
from heartbeats.trigger import Elapsed, Every, Stagnant

RULES = replace(QUIET_RULES, heartbeats=BUILT_IN, stall=9e9)
OF_FLEET = {"consolidate": "every 10 attempts of the fleet"}


# --- protected --------------------------------------------------------------------------------------------------------


PROTECTED: list[tuple[str, Mapping[str, str | int | float | None]]] = [
    ("ann", {"name": "reflect", "every": 11}),
    ("ann", {"name": "reflect", "stagnant": 1}),
    ("ann", {"name": "reflect", "seconds": 60}),
    ("ann", {"name": "reflect", "prompt": "say OK"}),
    ("ann", {"name": "reflect", "prompt": " \n"}),
    ("ann", {"name": "reflect", "delivery": "inline"}),
    ("ann", {"name": "reflect", "scope": "fleet"}),
    ("ann", {"name": "Reflect", "every": 1, "prompt": "namesake"}),
    ("ann", {"name": "consolidate", "every": 1000, "prompt": "a harmless namesake"}),
    (FLEET, {"name": "consolidate", "every": 101}),
    (FLEET, {"name": "consolidate", "prompt": "say OK"}),
    (FLEET, {"name": "consolidate", "scope": "own"}),
    (FLEET, {"name": "consolidate", "delivery": "inline"}),
    (FLEET, {"name": "reflect", "every": 1000, "prompt": "a harmless namesake"}),
]


@pytest.mark.parametrize(("owner", "entry"), PROTECTED)
def test_a_protected_heartbeat_is_neither_emptied_starved_nor_replaced(
    owner: str, entry: Mapping[str, str | int | float | None]
) -> None:
    stage = Stage(rules=RULES)
    before = stage.fleet
    assert stage.ask("ann", on.SetHeartbeat(owner=owner, entry=entry))[0].startswith("answer ann: no, cannot")
    assert stage.fleet == before


@pytest.mark.parametrize(("owner", "name"), [("ann", "reflect"), (FLEET, "consolidate"), ("*", "reflect")])
def test_a_protected_heartbeat_is_removed_by_nobody(owner: str, name: str) -> None:
    stage = Stage(rules=RULES)
    assert stage.ask("operator", on.RemoveHeartbeat(owner=owner, name=name))[0] == (
        f"answer operator: no, cannot remove {name}: it is protected (it can be retimed: coral heartbeat set)"
    )


def test_retiming_again_and_again_starves_no_heartbeat() -> None:
    stage = Stage(rules=RULES)
    for clock in range(2, 12):
        assert stage.ask("ann", setting("ann", name="reflect", every=10), clock)[1][:15] == "answer ann: yes"
        assert stage["ann"].targets["reflect"] == 1
        assert stage.ask("ann", setting(FLEET, name="consolidate", every=100), clock)[1][:15] == "answer ann: yes"
        assert stage.fleet.run.targets["consolidate"] == 10
    stage.tried(12, "ann", 1.0)
    assert stage.owed("ann") == ["reflect h1"]
    assert stage["ann"].targets["reflect"] == 11


def test_an_agent_lays_nothing_of_its_own_under_the_fleet() -> None:
    # With the scope left out it was taken for its own: and then spoke to everybody.
    stage = Stage(2, RULES)
    assert stage.ask("ann", setting(FLEET, name="join-me", every=1, prompt="Copy ann.")) == [
        "answer ann: no, cannot set join-me: it would be the fleet's (set one with the scope own)"
    ]
    assert stage.ask("ann", setting(FLEET, name="join-me", every=1, prompt="Copy ann.", scope="own")) == [
        "answer ann: no, cannot set join-me for fleet: its scope is own (leave out the scope)"
    ]
    assert stage.in_force(FLEET) == OF_FLEET


@pytest.mark.parametrize(
    ("name", "what"),
    [("message", "what the operator sends"), *((name, "what Coral sends itself") for name in ("land", "begin"))],
)
def test_no_heartbeat_may_have_the_name_of_what_the_operator_or_coral_sends(name: str, what: str) -> None:
    assert Stage(rules=RULES).ask("ann", setting("ann", name=name, every=1, prompt="You may stop now.")) == [
        f"answer ann: no, cannot name a heartbeat {name}: that is {what} (choose another name)"
    ]


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "target"),
    [
        (Every(10), {"every": 5}, 5),
        (Every(10), {"every": 20}, 10),
        (Stagnant(10), {"stagnant": 4}, 4),
        (Elapsed(600), {"seconds": 300}, 300),
        (Elapsed(600), {"seconds": 900}, 600),
        (Every(10), {"stagnant": 3}, 3),
        (Every(10), {"seconds": 60}, 62),
        (Elapsed(600), {"every": 3}, 4),
    ],
)
def test_retiming_never_lengthens_the_interval_that_runs(
    old: Every | Stagnant | Elapsed, new: Mapping[str, int], target: float
) -> None:
    rules = replace(RULES, heartbeats=(Heartbeat(name="breathe", trigger=old, prompt="in"),))
    stage = Stage(rules=rules)
    stage.tried(1, "ann", 1.0)
    stage.ask("operator", setting("ann", name="breathe", **new))
    assert stage["ann"].targets == {"breathe": target}


@pytest.mark.parametrize("first", ["retimed", "graded"])
def test_a_crossing_and_a_retiming_in_one_batch_are_taken_in_their_order(first: str) -> None:
    stage = Stage(rules=replace(RULES, heartbeats=(Heartbeat(name="breathe", trigger=Every(2), prompt="in"),)))
    stage.tried(2, "ann", 1.0)
    (number,) = stage.in_grading(2, "ann")
    graded = stage.graded(number, 2.0)
    retimed = stage.asks("ann", setting("ann", name="breathe", every=1))
    stage.at(3, *([retimed, graded] if first == "retimed" else [graded, retimed]))
    # Once in either order; from here on after every attempt.
    assert stage.owed("ann") == ["breathe h1"]
    assert stage["ann"].targets == {"breathe": 3}


def test_the_fleet_s_interval_is_the_fleet_s() -> None:
    stage = Stage(2, RULES)
    stage.tried(2, "ann", 1.0)
    stage.tried(2, "ben", 1.0)
    stage.ask("ann", setting(FLEET, name="consolidate", every=20))
    assert stage.fleet.run.targets == {"consolidate": 10}
    stage.ask("operator", setting(FLEET, name="pool", every=3, prompt="pool"))
    assert stage.fleet.run.targets == {"consolidate": 10, "pool": 5}
