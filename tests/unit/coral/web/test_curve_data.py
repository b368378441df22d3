"""The curve that the page draws: the best, one agent's own, and an even choice of the attempts."""

import pytest
from dashboard import visitor
from sample import attempt, make_run, write_events, write_status

from attempts.record import Verdict
from attempts.store import Store
from coral.cli.report.chart import AxisScale, bounds
from coral.cli.ui import live_frame
from coral.cli.ui.run_follower import RunFollower
from coral.errors import CoralError
from coral.reading.curve import read_curve
from coral.reading.timeline import read_figures
from coral.web import curve_data
from coral.web.curve_data import Curves
from coral.web.reading import RunView
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    return made


def published(number: int) -> dict[str, object]:
    return {"type": "published", "attempt": number, "clock": 10.0 * number}


def numbers(curve: dict) -> list[int]:
    return [point["number"] for point in curve["points"]]


def test_the_curve_has_the_best_and_every_attempt(layout: Layout) -> None:
    write_events(layout, *map(published, range(1, 5)))
    curve = visitor(layout).get(f"/api/runs/{layout.root.name}/curve").json()
    assert [step[1:] for step in curve["steps"]] == [[1.0, 0], [1.5, 1], [2.0, 4]]
    points = [(point["number"], point["at"], point["verdict"], point["score"]) for point in curve["points"]]
    assert points[1] == (2, 20.0, "failed", None)
    assert [point[0] for point in points] == [1, 2, 3, 4]
    assert curve["left_out"] == 0


def test_the_curve_says_whether_it_begins_with_the_seed(tmp_path) -> None:
    for scores, has_seed in (((None, 1.0), False), ((1.0, None), True)):
        made = make_run(tmp_path / "more", scores=scores)
        write_status(made)
        curve = visitor(made).get(f"/api/runs/{made.root.name}/curve").json()
        assert (len(curve["steps"]), curve["has_seed"]) == (1, has_seed)


def test_a_far_seed_hides_no_step_here_in_a_terminal_or_in_a_report(tmp_path) -> None:
    """One axis for all three: it begins at #1, and the seed and #3 are at its edge."""
    far = make_run(tmp_path / "far", scores=(-50.0, 2.62, 2.63, 1.5, 2.636))
    write_status(far)
    write_events(far, *map(published, range(1, 5)))
    axis = visitor(far).get(f"/api/runs/{far.root.name}/curve").json()["axis"]
    assert axis["begins"] == [10.0, 2.62, 1]
    assert (axis["low"], axis["high"]) == pytest.approx((2.6192, 2.6368))
    view = RunView(far)
    assert bounds(read_curve(view, read_figures(far).clocks), AxisScale.SCORE) == (axis["low"], axis["high"])
    watch = RunFollower(far)
    watch.update()
    assert live_frame.curve(watch, 60, 5)[4].plain.startswith("≤2.62 ┤")


def test_of_one_agent_it_has_all_attempts_and_the_own_best(layout: Layout) -> None:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/curve", params={"agent": "agent-2"})
    curve = answer.json()
    assert numbers(curve) == [1, 3]
    assert {name: [step[1:] for step in steps] for name, steps in curve["own"].items()} == {
        "agent-2": [[1.0, 0], [1.5, 1]]
    }
    assert [step[2] for step in curve["steps"]] == [0, 1, 4], "the best of the fleet, for comparison"
    with pytest.raises(CoralError, match="no such agent"):
        Curves().get(RunView(layout), {"agent": "agent-9"})


def test_a_long_curve_keeps_each_best_and_says_how_many_it_leaves_out(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(curve_data, "MOST_POINTS", 20)
    for number in range(5, 205):
        Store(layout.attempts).publish(attempt(number, 1.1, verdict=Verdict.WORSE))
    curve = Curves().get(RunView(layout), {})
    shown = numbers(curve)
    assert {1, 4} <= set(shown)
    assert 10 <= len(shown) <= 30
    assert {number % 2 for number in shown[2:]} == {0, 1}, "of agents that submit in turn, all are shown"
    assert shown[-1] > 150
    assert curve["left_out"] == 204 - len(shown)


def test_a_curve_is_made_once_until_another_attempt_is_published(layout: Layout) -> None:
    curves = Curves()
    RunView(layout).index.close()  # it is made in the folder of the attempts, which changes that
    first = curves.get(RunView(layout), {})
    assert curves.get(RunView(layout), {}) is first
    assert numbers(curves.get(RunView(layout), {"agent": "agent-1"})) == [2, 4], "another curve"
    write_events(layout, published(5))
    Store(layout.attempts).publish(attempt(5, 2.5))
    again = curves.get(RunView(layout), {})
    assert numbers(again) == [1, 2, 3, 4, 5]
    assert again["points"][-1]["at"] == 50.0, "the timeline was read on"
