"""Steering: each thing that the page can do is the request that a command would write; nothing else is written."""

import pytest
from dashboard import change_headers, visitor
from sample import STEERED_TASK, make_run, requests_of, write_heartbeats, write_status

from coral.cli import main
from coral.config.load import load
from coral.web.steering import REQUESTS
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    write_heartbeats(made)
    (tmp_path / "seed").mkdir()
    (tmp_path / "task.yaml").write_text(STEERED_TASK)
    made.task_file.write_text(load(tmp_path, ()).text)
    return made


def send(layout: Layout, given: object) -> tuple[int, dict]:
    answer = visitor(layout).post(f"/api/runs/{layout.root.name}/requests", json=given, headers=change_headers())
    return answer.status_code, answer.json()


GRANTED = [
    ({"type": "tell", "text": " try less "}, {"type": "tell", "to": "*", "text": "try less"}),
    ({"type": "tell", "to": "agent-2", "text": "x"}, {"type": "tell", "to": "agent-2", "text": "x"}),
    ({"type": "answer", "number": 2, "text": "yes"}, {"type": "answer", "number": 2, "text": "yes"}),
    ({"type": "acknowledge_alerts", "number": 3}, {"type": "acknowledge_alerts", "through": 3}),
    *(({"type": kind, "agent": "agent-1"},) * 2 for kind in ("pause", "unpause", "restart", "retire")),
    (
        {"type": "restart", "agent": "agent-1", "fresh": True},
        {"type": "restart", "agent": "agent-1", "fresh": True},
    ),
    (
        {"type": "set_budget", "key": "hours", "value": " 12 "},
        {"type": "set_budget", "key": "hours", "limit": 12.0},
    ),
    (
        {"type": "set_budget", "key": "money", "value": "none"},
        {"type": "set_budget", "key": "money", "limit": None},
    ),
    (
        {"type": "add_agent", "name": " zoe ", "runtime": "command", "model": "", "role": "Review.", "options": {}},
        {"type": "add_agent", "name": "zoe", "runtime": "command", "model": "", "role": "Review."},
    ),
    ({"type": "add_agent"}, {"type": "add_agent", "name": ""}),
    (
        {"type": "move_agent", "agent": "agent-2", "model": "sonnet", "role": None},
        {"type": "move_agent", "agent": "agent-2", "model": "sonnet"},
    ),
    *(({"type": kind},) * 2 for kind in ("hold_grading", "release_grading")),
    ({"type": "cancel_grade", "number": 7, "extra": 1}, {"type": "cancel_grade", "number": 7}),
    (
        {"type": "set_heartbeat", "owner": "agent-1", "heartbeat": {"name": "redirect", "stagnant": 3, "by": "me"}},
        {"type": "set_heartbeat", "owner": "agent-1", "heartbeat": {"name": "redirect", "stagnant": 3}},
    ),
    *(({"type": "remove_heartbeat", "owner": "agent-1", "name": "redirect"},) * 2 for _ in range(1)),
    *(({"type": "reset_heartbeats", "owner": "fleet"},) * 2 for _ in range(1)),
]


@pytest.mark.parametrize(("given", "written"), GRANTED, ids=lambda item: item["type"])
def test_what_is_asked_becomes_a_request_of_the_operator(layout: Layout, given: dict, written: dict) -> None:
    status, answer = send(layout, given)
    assert (status, answer["answered"]) == (200, False)
    assert "nobody supervises this run" in answer["message"]
    assert requests_of(layout) == [written]


def test_all_that_the_page_can_ask_for_is_tried() -> None:
    assert {given["type"] for given, _ in GRANTED} == set(REQUESTS) - {"stop"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "no request of this page"),
        ({"type": "start_job", "agent": "agent-1", "command": ["sh"]}, "no request of this page"),
        ({"type": "leave"}, "no request of this page"),
        ({"type": ["tell"]}, "no request of this page"),
        ({"type": "tell", "text": "  "}, "there is no text"),
        ({"type": "tell", "to": "../agent", "text": "x"}, "cannot find the agent"),
        ({"type": "pause", "agent": "agent-9"}, "cannot find the agent"),
        ({"type": "cancel_grade", "number": True}, "there is no number"),
        ({"type": "set_heartbeat", "owner": "agent-1", "heartbeat": {"name": "redirect"}}, "nothing to change"),
        (
            {"type": "set_heartbeat", "owner": "agent-1", "heartbeat": {"name": "x", "prompt": "{{ nothing }}"}},
            "its prompt cannot be rendered",
        ),
        ({"type": "stop"}, "nobody supervises it"),
        ({"type": "add_agent", "name": 7}, "its name is no text"),
        ({"type": "add_agent", "model": ["opus"]}, "the model is no text"),
        ({"type": "add_agent", "model": "opus"}, "scripted uses no model"),
        ({"type": "add_agent", "runtime": "codec"}, "there is none of that name"),
        ({"type": "add_agent", "runtime": "antigravity:fly_anyway"}, "this run does not have it"),
        ({"type": "move_agent", "agent": "agent-9", "model": "x"}, "cannot find the agent"),
        ({"type": "move_agent", "agent": "agent-2"}, "nothing is to change"),
        ({"type": "move_agent", "agent": "agent-2", "runtime": "scripted", "model": "x"}, "scripted uses no model"),
    ],
)
def test_what_cannot_be_done_is_refused_and_writes_nothing(layout: Layout, given: object, says: str) -> None:
    status, answer = send(layout, given)
    assert (status, says in answer["error"]) == (404, True), answer
    assert requests_of(layout) == []


@pytest.mark.parametrize("every", ["{", "NaN", "-Infinity", "1e999"])
def test_what_is_no_json_is_refused(layout: Layout, every: str) -> None:
    headers = {**change_headers(), "content-type": "application/json"}
    given = f'{{"type":"set_heartbeat","owner":"agent-1","heartbeat":{{"name":"x","every":{every}}}}}'
    answer = visitor(layout).post(f"/api/runs/{layout.root.name}/requests", content=given, headers=headers)
    assert answer.status_code == 400
    assert requests_of(layout) == []


def test_the_page_offers_how_agents_are_driven_now_and_would_be(layout: Layout) -> None:
    found = visitor(layout).get(f"/api/runs/{layout.root.name}/membership").json()
    assert found["first"] == "scripted"
    assert found["runtimes"][:2] == [
        {"runtime": "scripted", "model": "", "role": "Draft."},
        {"runtime": "command", "model": "opus", "role": ""},
    ]
    assert {"claude", "codex", "native"} <= {one["runtime"] for one in found["runtimes"]}
    assert found["agents"] == {
        "agent-1": {"runtime": "scripted", "model": "", "role": "Draft."},
        "agent-2": {"runtime": "command", "model": "opus", "role": ""},
    }
    layout.task_file.unlink()
    assert "cannot read" in visitor(layout).get(f"/api/runs/{layout.root.name}/membership").json()["error"]


def test_a_refusal_says_what_the_command_says(layout: Layout, capsys) -> None:
    _, refused = send(layout, {"type": "add_agent", "model": "opus"})
    assert main(["agent", "add", "--model", "opus", "--run", str(layout.root)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said == f"coral: {refused['error']} {refused['hint']}"
