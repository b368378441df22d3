"""The fleet page: what it shows is what `coral status` says, and what it cannot read it says."""

import json

import pytest
from dashboard import visitor
from sample import agent_status, make_run, stamp, write_status

from coral.reading.lenient_json import LenientJson
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    return made


def fleet_of(layout: Layout) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/fleet")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_seed_that_has_failed_is_no_reference(layout: Layout) -> None:
    write_status(layout, baseline=None)
    (layout.attempts / "000000.json").unlink()
    score = fleet_of(layout)["score"]
    assert (score["best"], score["gain"], score["has_seed"]) == ("2", "", False)


def test_the_score_and_the_agents_are_told(layout: Layout) -> None:
    fleet = fleet_of(layout)
    score = fleet["score"]
    assert (score["best"], score["number"], score["agent"], score["seed"], score["gain"]) == (
        "2",
        4,
        "agent-1",
        "1",
        "+1",
    )
    assert score["has_seed"]
    (first, _) = fleet["agents"]
    assert (first["name"], first["phase"], first["launch"], first["best"]) == ("agent-1", "running", 3, "2")
    assert first["beat"].endswith("thinking about rows")
    assert first["next"] == "redirect 4"


def test_a_budget_has_its_share_and_its_forecast(layout: Layout) -> None:
    write_status(layout, budgets=[{"key": "attempts", "limit": 100, "used": 25}])
    fleet = fleet_of(layout)
    (budget,) = fleet["budgets"]
    assert (fleet["attempts"], fleet["trials"]) == (4, "21 trials of numbers")
    assert (budget["share"], budget["amounts"]) == (0.25, "25 of 100")
    assert budget["left"] == "~30 min left"


def test_use_that_is_not_known_is_not_told_as_nothing(layout: Layout) -> None:
    budgets = [{"key": "money", "limit": 5.0, "used": 1.5}, {"key": "tokens", "limit": 10_000, "used": 0}]
    agents = [agent_status("agent-1", spent={"money": None}), agent_status("agent-2", spent={"money": 1.5})]
    spent = {"tokens": None, "money": 1.5}
    write_status(
        layout, budgets=budgets, agents=agents, spent=spent, tokens_unknown_of=["agent-1"], money_unknown_of=["agent-1"]
    )
    fleet = fleet_of(layout)
    assert (fleet["used"], fleet["per_hour"]) == ("at least $1.50", "at least $9.00 an hour")
    assert [(budget["share"], budget["amounts"]) for budget in fleet["budgets"]] == [
        (0.3, "at least $1.50 of $5.00"),
        (None, "use not known, limit 10.0k"),
    ]
    assert [agent["used"] for agent in fleet["agents"]] == ["use not known", "$1.50"]


def test_the_agents_of_unknown_use_are_read_as_often_however_many_there_are(layout: Layout, monkeypatch) -> None:
    texts, read = LenientJson.texts, []
    monkeypatch.setattr(LenientJson, "texts", lambda found, name: read.append(name) or texts(found, name))

    def reads(count: int) -> int:
        names = [f"agent-{number}" for number in range(1, count + 1)]
        write_status(
            layout, agents=[agent_status(name) for name in names], tokens_unknown_of=names, money_unknown_of=names
        )
        read.clear()
        assert {agent["used"] for agent in fleet_of(layout)["agents"]} == {"use not known"}
        return read.count("tokens_unknown_of")

    assert reads(2) == reads(40), "else all names are read for each agent"


def test_what_needs_a_person_is_on_top(layout: Layout) -> None:
    alerts = [
        {"id": "a-1", "number": 1, "text": "seen", "at": stamp(60), "acknowledged": True},
        {"id": "a-2", "number": 2, "text": "the disk is full", "at": stamp(60), "acknowledged": False},
    ]
    write_status(layout, alerts=alerts, questions=[{"number": 3, "agent": "agent-2", "text": "may I?"}])
    fleet = fleet_of(layout)
    assert [alert["text"] for alert in fleet["alerts"]] == ["the disk is full"]
    assert fleet["questions"] == [{"number": 3, "agent": "agent-2", "text": "may I?"}]
    assert any("nobody supervises this run" in text for text in fleet["warnings"])


def test_a_grade_in_progress_is_told(layout: Layout) -> None:
    beats = [{"number": 5, "progress": 0.4, "message": "fold 3 of 7"}]
    write_status(layout, grading={"slots": 2, "running": [5, 6], "queued": [7], "beats": beats})
    grading = fleet_of(layout)["grading"]
    assert [(one["number"], one["progress"]) for one in grading["running"]] == [(5, 0.4), (6, None)]
    assert grading["queued"] == [7]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"agents": 3, "best": [], "budgets": {}, "alerts": [1]}'])
def test_a_damaged_status_is_told_and_shows_the_rest(layout: Layout, content: str) -> None:
    layout.status.write_text(content)
    fleet = fleet_of(layout)
    assert fleet["agents"] == []
    assert fleet["warnings"]


def test_without_its_status_the_figures_of_a_run_are_those_of_its_records(layout: Layout) -> None:
    layout.status.unlink()
    fleet = fleet_of(layout)
    assert (fleet["attempts"], fleet["failed"], fleet["clock"], fleet["used"]) == (4, 1, None, "use not known")
    score = fleet["score"]
    assert (score["best"], score["number"], score["seed"], score["gain"]) == ("2", 4, "1", "+1")


def test_an_agent_that_rests_says_why(layout: Layout) -> None:
    held = {"account": "work", "by": "limit", "left": 120}
    write_status(layout, agents=[agent_status("agent-1", phase="parked", held=held, beat=None)])
    assert fleet_of(layout)["agents"][0]["beat"].startswith("usage limit of work")


def test_no_number_that_json_does_not_have_is_sent(layout: Layout) -> None:
    layout.status.write_text(layout.status.read_text().replace("600.0", "NaN"))
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/fleet")
    assert "NaN" not in answer.text
    json.loads(answer.text)
