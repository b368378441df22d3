"""Heartbeats as people write them, and as they are shown to people."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attempts.fields import printable
from heartbeats.entry import from_entry, to_dict
from heartbeats.folder import Folder, _row, load_entries
from heartbeats.heartbeat import BUILT_IN, Delivery, Heartbeat, HeartbeatError, Scope, merge, set_heartbeat
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


def test_an_entry_changes_what_it_says_and_nothing_else() -> None:
    (consolidate,) = load_entries([{"name": "consolidate", "every": 20}])
    assert consolidate == replace(BUILT_IN[1], trigger=Every(20))
    assert load_entries([{"name": "reflect"}]) == (BUILT_IN[0],)
    assert load_entries([{"name": "checkpoint", "minutes": 5}])[0].trigger == Elapsed(300)
    assert load_entries([{"name": "checkpoint", "seconds": 0.5}])[0].trigger == Elapsed(0.5)
    assert load_entries([{"name": "reflect", "prompt": "Say why.", "every": None}])[0].prompt == "Say why."
    (mine,) = load_entries([{"name": "mine", "stagnant": 4, "scope": "fleet", "delivery": "inline", "prompt": "Why?"}])
    assert mine == Heartbeat(
        name="mine", trigger=Stagnant(4), scope=Scope.FLEET, delivery=Delivery.INLINE, prompt="Why?"
    )


def test_retiming_keeps_what_was_set_before() -> None:
    current = set_heartbeat(BUILT_IN, replace(BUILT_IN[2], prompt="Turn around."), "operator")
    retimed = from_entry({"name": "redirect", "stagnant": 7}, current)
    assert (retimed.prompt, retimed.trigger) == ("Turn around.", Stagnant(7))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (None, "no mapping"),
        ("reflect", "no mapping"),
        ({"every": 3, "prompt": "x"}, "''"),
        ({"name": 3}, "name must be text"),
        ({"name": "mine", "prompt": "x"}, "has no trigger"),
        ({"name": "mine", "every": 3, "minutes": 3}, "every and minutes"),
        ({"name": "mine", "every": "3"}, "every must be a whole number"),
        ({"name": "mine", "every": True}, "every must be a whole number"),
        ({"name": "mine", "every": 0}, "every must be a whole number"),
        ({"name": "mine", "every": 2.5}, "every must be a whole number"),
        ({"name": "mine", "stagnant": 10**400}, "stagnant must be a whole number"),
        ({"name": "mine", "minutes": float("nan")}, "minutes must be a number"),
        ({"name": "mine", "minutes": float("inf")}, "minutes must be a number"),
        ({"name": "mine", "minutes": 10**400}, "minutes must be a number"),
        ({"name": "mine", "seconds": False}, "seconds must be a number"),
        ({"name": "mine", "seconds": -1}, "seconds must be a number"),
        ({"name": "mine", "every": 3, "scope": "world"}, "scope must be own or fleet"),
        ({"name": "mine", "every": 3, "delivery": 3}, "delivery must be interrupt or inline"),
        ({"name": "mine", "every": 3, "prompt": ["x"]}, "prompt must be text"),
        ({"name": "mine", "every": 3, "protected": True}, "no key 'protected'"),
        ({"name": "mine", "every": 3, "by": "operator"}, "no key 'by'"),
        ({"name": "reflect", 3: 4}, "no key '3'"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said(entry: object, reason: str) -> None:
    with pytest.raises(HeartbeatError, match=reason) as caught:
        merge(BUILT_IN, load_entries([entry]))
    assert caught.value.hint


def test_what_is_in_force_is_shown_to_people(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "heartbeats")
    folder.write("agent-1", [(BUILT_IN[0], "in 1 attempt"), (PLAN, "")])
    text = (tmp_path / "heartbeats" / "agent-1.yaml").read_text()
    assert text.startswith("# Heartbeats in force for agent-1.")
    assert "when: every attempt\n" in text
    assert "    Is #{{ own.best_number }} a ceiling?\n\n    - yes: why?" in text
    reflect, plan = folder.read("agent-1")
    assert (reflect["next"], reflect["protected"], reflect["by"]) == ("in 1 attempt", True, "built-in")
    assert plan["prompt"] == PLAN.prompt
    assert "next" not in plan


def test_a_row_gives_the_heartbeat_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("fleet", [(heartbeat, "") for heartbeat in (*BUILT_IN, PLAN)])
    rows = [{key: value for key, value in row.items() if key != "when"} for row in folder.read("fleet")]
    assert rows == [to_dict(heartbeat) for heartbeat in (*BUILT_IN, PLAN)]


def test_what_many_have_is_made_into_yaml_once(tmp_path: Path) -> None:
    made = _row.cache_info().misses
    for number in range(16):
        Folder(tmp_path).write(f"agent-{number}", [(PLAN, "2 attempts, of sixteen agents"), (BUILT_IN[0], "")])
    assert _row.cache_info().misses - made <= 2
    assert len({tuple(map(str, Folder(tmp_path).read(f"agent-{number}"))) for number in range(16)}) == 1


def test_an_owner_without_a_readable_file_has_no_rows(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.read("nobody") == []
    for content in (b"", b"a: [", b"3", b"\xff", b"- 1\n- {name: reflect}\n", b"!!python/object:os.system {}"):
        (tmp_path / "agent-1.yaml").write_bytes(content)
        assert [row["name"] for row in folder.read("agent-1")] == (["reflect"] if b"reflect" in content else [])
    (tmp_path / "agent-1.yaml").unlink()
    os.mkfifo(tmp_path / "agent-1.yaml")
    assert folder.read("agent-1") == []


def test_an_empty_list_is_shown_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("agent-1", [])
    assert folder.read("agent-1") == []
    assert list(tmp_path.iterdir()) == [tmp_path / "agent-1.yaml"]


lines = st.lists(st.text("ab#:-'\"|>{} \t\u2028\x85\ufeff", max_size=8), max_size=4).map("\n".join)


@settings(max_examples=25)
@given(lines | st.text(max_size=40))
@example("a\n\u2028")
@example("a\n  b \n\n\n")
def test_any_prompt_can_be_shown(tmp_path_factory: pytest.TempPathFactory, prompt: str) -> None:
    folder = Folder(tmp_path_factory.getbasetemp() / "any")
    folder.write("agent-1", [(replace(PLAN, prompt=prompt), "")])
    (row,) = folder.read("agent-1")
    assert row["name"] == "plan"
    assert row["prompt"] == printable(prompt)
