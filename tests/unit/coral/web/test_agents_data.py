"""An agent's heartbeats and its lane; its conversation in parts, with what is hostile as text."""

import json
import tracemalloc

import pytest
from dashboard import visitor
from sample import agent_status, make_run, write_events, write_heartbeats, write_status

from coral.web import agents_data
from coral.web.reading import opened
from workspace.layout import Layout

HOSTILE = "<script>x()</script>\x1b[31m"


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made, agents=[agent_status(name, runtime="claude") for name in ("agent-1", "agent-2")])
    write_heartbeats(made)
    return made


def got(layout: Layout, path: str, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def say(layout: Layout, launch: int, *texts: str) -> None:
    layout.logs("agent-1").mkdir(parents=True, exist_ok=True)
    layout.prompt("agent-1", launch).write_text(f"do it {HOSTILE}")
    lines = [{"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}} for text in texts]
    layout.output("agent-1", launch).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_heartbeats_of_the_fleet_and_of_an_agent_are_told(layout: Layout) -> None:
    page = got(layout, "heartbeats", agent="agent-2")
    assert page["agents"] == ["agent-1", "agent-2"]
    found = {(one["owner"], one["name"]): one for one in page["heartbeats"]}
    assert "from 1 to 10 times the built-in one" in found["fleet", "consolidate"]["may"]
    assert [found["agent-2", name]["trigger"] for name in ("reflect", "redirect", "checkpoint")] == [
        "every",
        "stagnant",
        "minutes",
    ]
    assert found["agent-2", "redirect"]["may"] == ""
    assert found["agent-2", "redirect"]["next"] == "4 without improvement"


def test_the_page_has_the_lane_of_the_agent_and_what_it_answered(layout: Layout) -> None:
    write_events(layout, {"type": "spawned", "agent": "agent-1", "launch": 2, "text": "launch 2", "clock": 6.0})
    (launch,) = got(layout, "heartbeats", agent="agent-1")["lane"]["items"]
    assert (launch["kind"], launch["launch"], launch["text"]) == ("launch", 2, "launch 2")
    say(layout, 2, f"it gained {HOSTILE}", *(f"more {number}" for number in range(9)))
    answer = got(layout, "heartbeats/answer", agent="agent-1", launch=2)
    assert answer["replies"][0] == "it gained <script>x()</script>[31m"
    assert (len(answer["replies"]), answer["more"]) == (8, True)
    assert got(layout, "heartbeats/answer", agent="agent-1", launch=9) == {"replies": [], "more": False}


def test_a_conversation_is_told_in_parts(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(agents_data, "ENTRIES", 3)
    say(layout, 1, "old")
    say(layout, 2, *(f"step {number}" for number in range(6)))
    last = got(layout, "transcript", agent="agent-1")
    assert (last["launch"], last["launches"], last["first"], last["total"]) == (2, [1, 2], 5, 8)
    assert [entry["text"] for entry in last["entries"]][:2] == ["step 4", "step 5"]
    before = got(layout, "transcript", agent="agent-1", launch=2, before=5)
    assert ([entry["text"] for entry in before["entries"]], before["first"], before["total"]) == (
        ["step 1", "step 2", "step 3"],
        2,
        8,
    )


def test_a_part_before_an_entry_that_is_none_is_the_last_one(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(agents_data, "ENTRIES", 3)
    say(layout, 1, *(f"step {number}" for number in range(6)))
    far, last = (got(layout, "transcript", agent="agent-1", before=before) for before in (10**11, 0))
    assert far == last


def test_no_more_of_a_long_conversation_is_held_than_is_shown(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(agents_data, "ENTRIES", 3)
    say(layout, 1, *("x" * 20_000 for _ in range(1500)))
    asked = {"agent": "agent-1", "before": "1500"}
    tracemalloc.start()
    with opened(layout) as view:
        page = agents_data.conversation(view, asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (page["first"], page["total"]) == (1497, 1502)
    assert peak < 22_000_000  # its file is read in pieces; all of it is 30 MB


def test_what_was_said_is_text(layout: Layout) -> None:
    say(layout, 1, HOSTILE)
    entries = got(layout, "transcript", agent="agent-1")["entries"]
    assert [entry["kind"] for entry in entries][:2] == ["prompt", "reply"]
    assert all("\x1b" not in entry["text"] for entry in entries)


def test_a_search_keeps_what_has_the_text(layout: Layout) -> None:
    say(layout, 1, "alpha", "beta")
    page = got(layout, "transcript", agent="agent-1", text="BETA")
    assert [entry["text"] for entry in page["entries"]] == ["beta"]


def test_an_unchanged_conversation_is_not_read_again(layout: Layout) -> None:
    say(layout, 1, "alpha")
    size = got(layout, "transcript", agent="agent-1")["size"]
    assert got(layout, "transcript", agent="agent-1", seen=size)["same"] is True
    say(layout, 1, "alpha", "beta")
    assert "same" not in got(layout, "transcript", agent="agent-1", seen=size)


@pytest.mark.parametrize("agent", ["agent-9", "../private", "..", "agent-1/../../private"])
def test_an_agent_that_is_none_is_refused(layout: Layout, agent: str) -> None:
    for path in ("transcript", "heartbeats"):
        answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{path}", params={"agent": agent})
        assert (answer.status_code, answer.json()["error"].startswith("cannot find the agent")) == (404, True)
