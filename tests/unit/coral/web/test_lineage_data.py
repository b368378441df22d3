"""The lineage as a graph: what is drawn of a run and around an attempt, what is left out, whose best came from whom."""

import pytest
from dashboard import visitor
from sample import agent_status, attempt, make_run, write_status

from attempts.record import Kind
from attempts.store import Store
from coral.web import lineage_data
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    """#4 of agent-1 is the best; #5 and #6 of agent-2 were built on #4 and #1."""
    made = make_run(tmp_path / "runs")
    Store(made.attempts).publish(attempt(5, 1.8, agent="agent-2", verdict="own best", parent=f"{4:040x}"))
    Store(made.attempts).publish(attempt(6, 0.5, agent="agent-2", verdict="worse", parent=f"{1:040x}"))
    Store(made.attempts).publish(attempt(7, 0.5, agent="agent-2", kind=Kind.CONFIRM, of=6, verdict="worse"))
    agents = [agent_status("agent-1", best=2.0, best_number=4), agent_status("agent-2", best=1.8, best_number=5)]
    write_status(made, agents=[*agents, agent_status("agent-3", best=None)])
    return made


def lineage(layout: Layout, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/lineage", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_graph_has_the_line_of_the_best_the_own_bests_and_the_latest(layout: Layout) -> None:
    found = lineage(layout)
    assert [(node["number"], node["parent"], node["main"]) for node in found["nodes"]] == [
        (0, None, True),
        (1, 0, True),
        (2, 1, True),
        (3, 2, True),
        (4, 3, True),
        (5, 4, False),
        (6, 1, False),
    ]
    assert (found["best"], found["left_out"], found["rows"]) == (4, 0, ["", "agent-2", "agent-1"])
    assert found["nodes"][4]["title"] == "try 4"


def test_whose_best_came_from_whom(layout: Layout) -> None:
    first, second = lineage(layout)["bests"]
    assert (second["agent"], second["number"], second["score"]) == ("agent-2", 5, "1.8")
    assert [(step["agent"], step["number"]) for step in second["from"]] == [
        ("agent-1", 4),
        ("agent-2", 3),
        ("agent-1", 2),
        ("agent-2", 1),
        ("", 0),
    ]
    assert (first["agent"], first["more"]) == ("agent-1", 0)


def test_scores_are_medians(layout: Layout) -> None:
    """#6 got 0.5 twice, and now 0.7; #5 got 1.8, and now 1.4."""
    for number, of, score in ((8, 6, 0.7), (9, 6, 0.7), (10, 5, 1.4)):
        confirmation = attempt(number, score, agent="agent-2", kind=Kind.CONFIRM, of=of, verdict="tied")
        Store(layout.attempts).publish(confirmation)
    found = lineage(layout)
    assert {node["number"]: node["score"] for node in found["nodes"]} | {5: "1.6", 6: "0.6"} == {
        node["number"]: node["score"] for node in found["nodes"]
    }
    assert [own["score"] for own in found["bests"]] == ["2", "1.6"]


def test_around_an_attempt_is_what_it_was_built_on_and_what_was_built_on_it(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(lineage_data, "MOST_NODES", 3)
    assert [node["number"] for node in lineage(layout)["nodes"]] == [0, 1, 4]
    for number in (6, 7):  # which measures #6 again
        assert [node["number"] for node in lineage(layout, around=number)["nodes"]] == [0, 1, 6]
    for wrong in ("99", "x", "-1"):
        path = f"/api/runs/{layout.root.name}/lineage"
        assert visitor(layout).get(path, params={"around": wrong}).status_code == 404


def test_many_attempts_are_left_out_and_counted(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(lineage_data, "MOST_NODES", 3)
    monkeypatch.setattr(lineage_data, "MOST_AGENTS", 1)
    monkeypatch.setattr(lineage_data, "MOST_STEPS", 2)
    found = lineage(layout)
    assert [(node["number"], node["parent"], node["between"]) for node in found["nodes"]] == [
        (0, None, 0),
        (1, 0, 0),
        (4, 1, 2),
    ]
    assert (found["left_out"], found["more_agents"]) == (4, 1)
    assert found["nodes"][1]["hidden"] == 2, "#2 and #6 were built on #1, and are not drawn"
    assert (len(found["bests"][0]["from"]), found["bests"][0]["more"]) == (2, 2)


def test_the_agents_with_the_fewest_attempts_share_a_row(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(lineage_data, "MOST_ROWS", 2)
    found = lineage(layout)
    assert (found["rows"], found["shared_row"]) == (["agent-2"], 2)


def test_an_attempt_of_an_earlier_epoch_is_said_to_be_one(layout: Layout) -> None:
    Store(layout.attempts).publish(attempt(8, 1.0, kind=Kind.BASELINE, agent="", epoch=2, verdict="new best"))
    write_status(layout, epoch=2)
    found = lineage(layout, around=6)
    assert found["note"] == "#6 is of epoch 1; the graph shows epoch 2"
    assert [node["number"] for node in found["nodes"]] == [8]


def test_the_answer_is_kept_until_another_attempt_is_published(layout: Layout, monkeypatch) -> None:
    client, made = visitor(layout), []
    real = lineage_data.lineage
    monkeypatch.setattr(lineage_data, "lineage", lambda view, number: made.append(number) or real(view, number))
    for _ in range(2):
        client.get(f"/api/runs/{layout.root.name}/lineage")
    client.get(f"/api/runs/{layout.root.name}/lineage", params={"around": "6"})
    assert made == [None, 6]
    Store(layout.attempts).publish(attempt(8, 9.0, verdict="new best"))
    assert client.get(f"/api/runs/{layout.root.name}/lineage").json()["best"] == 8
