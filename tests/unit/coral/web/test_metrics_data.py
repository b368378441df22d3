"""Metrics against each other: their names, the points, and what is left out of many."""

import pytest
from dashboard import visitor
from sample import attempt, make_run, write_status

from attempts.record import Kind
from attempts.store import Store
from coral.web import metrics_data
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs", scores=(1.0,))
    write_status(made)
    for number in range(1, 8):
        metrics = {"speed": number * 10, "note": "text", "whole": True} | ({"<b>": 0.5} if number % 2 else {})
        verdict = "new best" if number == 3 else "worse"
        Store(made.attempts).publish(attempt(number, number / 2, metrics=metrics, verdict=verdict))
    Store(made.attempts).publish(attempt(8, 0.5, kind=Kind.CONFIRM, of=1, verdict="worse", metrics={"speed": 1}))
    return made


def ask(layout: Layout, what: str, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/{what}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_metrics_that_are_numbers_have_names(layout: Layout) -> None:
    assert ask(layout, "metrics") == {"names": ["<b>", "speed"]}


def test_points_have_both_figures(layout: Layout) -> None:
    found = ask(layout, "metrics/pairs", x="speed")
    assert found["points"][0] == [1, "agent-2", "worse", 10.0, 0.5]
    assert [point[0] for point in found["points"]] == [1, 2, 3, 4, 5, 6, 7], "a confirmation is no further point"
    assert [point[0] for point in ask(layout, "metrics/pairs", x="speed", y="<b>")["points"]] == [1, 3, 5, 7]
    assert ask(layout, "metrics/pairs", x="no such metric")["points"] == []


def test_of_many_points_every_new_best_is_kept(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(metrics_data, "MOST_POINTS", 3)
    found = ask(layout, "metrics/pairs", x="speed", y="speed")
    assert [point[0] for point in found["points"]] == [3, 6]
    assert found["left_out"] == 5
