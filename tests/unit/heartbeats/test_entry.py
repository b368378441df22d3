"""Heartbeats as people and agents write them."""

import math
from dataclasses import replace

import pytest

from heartbeats.entry import from_entry, is_switched_off, to_dict
from heartbeats.heartbeat import BUILT_IN, Delivery, Heartbeat, HeartbeatError, Scope, set_heartbeat
from heartbeats.trigger import Elapsed, Every, Stagnant

PLAN = Heartbeat(
    name="plan",
    trigger=Stagnant(3),
    delivery=Delivery.INLINE,
    prompt="Is #{{ own.best_number }} a ceiling?\n\n- yes: why?\n  no: {what next}\n",
    by="agent-1",
)


@pytest.mark.parametrize("heartbeat", [*BUILT_IN, PLAN, replace(PLAN, trigger=Elapsed(90.5), scope=Scope.FLEET)])
def test_a_heartbeat_as_an_entry_is_that_heartbeat_again(heartbeat: Heartbeat) -> None:
    entry = {key: value for key, value in to_dict(heartbeat).items() if key not in ("protected", "by")}
    assert from_entry(entry, ()) == replace(heartbeat, by="built-in")


def test_an_entry_changes_what_it_says_and_nothing_else_also_of_what_was_set_before() -> None:
    assert from_entry({"name": "consolidate", "every": 20}) == replace(BUILT_IN[1], trigger=Every(20))
    assert from_entry({"name": "reflect"}) == BUILT_IN[0]
    assert from_entry({"name": "checkpoint", "minutes": 5}).trigger == Elapsed(300)
    assert from_entry({"name": "checkpoint", "seconds": 0.5}).trigger == Elapsed(0.5)
    assert from_entry({"name": "reflect", "prompt": "Say why.", "every": None}).prompt == "Say why."
    mine = from_entry({"name": "mine", "stagnant": 4, "scope": "fleet", "delivery": "inline", "prompt": "Why?"})
    assert mine == Heartbeat(
        name="mine", trigger=Stagnant(4), scope=Scope.FLEET, delivery=Delivery.INLINE, prompt="Why?"
    )
    current = set_heartbeat(BUILT_IN, replace(BUILT_IN[2], prompt="Turn around."), "operator")
    retimed = from_entry({"name": "redirect", "stagnant": 7}, current)
    assert (retimed.prompt, retimed.trigger) == ("Turn around.", Stagnant(7))


MINE: dict[str, object] = {"name": "mine", "every": 3}
WRONG: dict[str, list[object]] = {
    "no mapping": [None, "reflect"],
    "''": [{"every": 3, "prompt": "x"}],
    "name must be text": [{"name": 3}],
    "has no trigger": [{"name": "mine", "prompt": "x"}],
    "every and minutes": [{**MINE, "minutes": 3}],
    "every must be a whole number": [{"name": "mine", "every": wrong} for wrong in ("3", True, 0, 2.5)],
    "stagnant must be a whole number": [{"name": "mine", "stagnant": 10**400}],
    "minutes must be a number": [{"name": "mine", "minutes": wrong} for wrong in (math.nan, math.inf, 10**400)],
    "seconds must be a number": [{"name": "mine", "seconds": wrong} for wrong in (False, -1)],
    "scope must be own or fleet": [{**MINE, "scope": "world"}],
    "delivery must be interrupt or inline": [{**MINE, "delivery": 3}],
    "prompt must be text": [{**MINE, "prompt": ["x"]}],
    "no key 'protected'": [{**MINE, "protected": True}],
    "no key 'by'": [{**MINE, "by": "operator"}],
    "no key '3'": [{"name": "reflect", 3: 4}],
}


@pytest.mark.parametrize(
    ("entry", "reason"), [(entry, reason) for reason, entries in WRONG.items() for entry in entries]
)
def test_the_error_names_what_is_wrong_with_an_entry(entry: object, reason: str) -> None:
    with pytest.raises(HeartbeatError, match=reason) as caught:
        set_heartbeat(BUILT_IN, from_entry(entry), "task")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("every", "seconds"), [("30m", 1800), ("2h", 7200), ("90 s", 90), ("1.5h", 5400), ("1d", 86_400)]
)
def test_a_period_is_written_in_natural_time(every: str, seconds: float) -> None:
    assert from_entry({"name": "mine", "every": every, "prompt": "x"}).trigger == Elapsed(seconds)


@pytest.mark.parametrize(
    ("entry", "is_off"),
    [
        ({"enabled": False}, True),
        ({"every": "0m"}, True),
        ({"minutes": 0}, True),
        ({"seconds": 0.0}, True),
        ({"every": 0}, True),
        ({"enabled": True}, False),
        ({"every": "1m"}, False),
        ({"every": 1}, False),
        ({"minutes": 5}, False),
        ({"minutes": False}, False),
        ({"every": False}, False),
        ({"every": "soon"}, False),
        ({}, False),
    ],
)
def test_a_heartbeat_is_switched_off_by_no_time_or_by_name(entry: dict[str, object], is_off: bool) -> None:
    assert is_switched_off({"name": "checkpoint", **entry}) is is_off


@pytest.mark.parametrize("every", ["0m", "soon", "5", "-3m", "30 minutes"])
def test_what_is_no_time_is_no_period(every: str) -> None:
    with pytest.raises(HeartbeatError, match="whole number from 1, or a time above 0"):
        from_entry({"name": "mine", "every": every, "prompt": "x"})
