"""Heartbeats in force, as they are shown to people."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from attempts.fields import printable
from heartbeats.entry import to_dict
from heartbeats.folder import Folder, _row
from heartbeats.heartbeat import BUILT_IN, Heartbeat
from heartbeats.trigger import Stagnant

PLAN = Heartbeat(
    name="plan", trigger=Stagnant(3), prompt="Is #{{ own.best_number }} a ceiling?\n\n- yes: why?\n  no: {what next}\n"
)


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
