"""What `coral.open_run` reads of a run is what the commands print of it, whatever kind of run it is."""

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sample import agent_status, attempt, make_run, write_events, write_status

import coral as api
from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind
from coral.supervisor.lock import hold_lock
from coral.views.reasons import reason_data
from workspace import knowledge
from workspace.layout import Layout

Command = Callable[..., tuple[int, str, str]]
SPENT = {"tokens": 1200, "input": 1000, "cached": 300, "output": 200, "money": 2.5}


def finished(runs: Path) -> Layout:
    layout = make_run(runs)
    reason = reason_data(RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4)))
    agents = [agent_status("agent-1", spent=SPENT, best_number=4), agent_status("agent-2", spent={"tokens": None})]
    write_status(
        layout,
        "stopped",
        reason=reason,
        agents=agents,
        spent=SPENT,
        tokens_unknown_of=["agent-2"],
        money_unknown_of=["agent-2"],
    )
    write_events(layout, *({"type": "published", "attempt": number, "clock": 10.0 * number} for number in range(1, 5)))
    for number, title in enumerate(("Rows beat columns", "All that is known"), 1):
        head = {"title": title, "author": "agent-1", "created": f"2026-01-0{number}", "attempts": [4]}
        text = "#1 to #4, +0.5" if number == 1 else "#1 scores 9"
        knowledge.write_note(layout.shared, f"{'synthesis' if number == 2 else 'note'}-{number}", head, text)
    return layout


def running(runs: Path) -> Layout:
    layout = make_run(runs)
    write_status(layout, grading={"slots": 2, "running": [5], "queued": [6], "paused": False})
    return layout


def minimizing(runs: Path) -> Layout:
    layout = make_run(runs, (3.0, 2.0))
    Store(layout.attempts).publish(attempt(2, 1.0, verdict=Verdict.NEW_BEST, against=1, delta=-1.0))
    write_status(layout, "stopped", direction="minimize", lead={"number": 2, "median": 1.0, "proven": True})
    return layout


def noisy(runs: Path) -> Layout:
    """#2 was measured three times and is proven; #3 leads by one lucky grade."""
    layout = make_run(runs, (1.0, 1.5))
    store, tree = Store(layout.attempts), f"{2:040x}"
    store.publish(attempt(2, 1.9, verdict=Verdict.TIED))
    again = {"kind": Kind.CONFIRM, "of": 2, "tree": tree, "commit": tree, "agent": "agent-1"}
    store.publish(attempt(3, 1.8, **again))
    store.publish(attempt(4, 2.1, verdict=Verdict.NEW_BEST, **again))
    store.publish(attempt(5, 2.3, verdict=Verdict.TIED))
    measured = {"agent": "agent-1", "median": 1.9, "count": 3}
    lead = {"number": 5, "agent": "agent-2", "median": 2.3, "count": 1, "proven": False}
    write_status(layout, "stopped", noise=0.2, confirmations=2, best={"number": 2, **measured}, lead=lead)
    return layout


def held_out(runs: Path) -> Layout:
    layout = make_run(runs)
    write_status(layout, "stopped")
    scores = [{"number": 0, "score": 5.0}, {"number": 4, "score": 4.0}]
    layout.holdout_scores.parent.mkdir(parents=True, exist_ok=True)
    layout.holdout_scores.write_text(json.dumps({"scores": scores}))
    return layout


def damaged(runs: Path) -> Layout:
    layout = make_run(runs)
    layout.status.write_text("{")
    (layout.attempts / "000002.json").write_text("no record")
    return layout


KINDS = [finished, running, minimizing, noisy, held_out, damaged]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def made(
    request: pytest.FixtureRequest, operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Layout]:
    monkeypatch.chdir(tmp_path)
    layout = request.param(tmp_path / "runs")
    with ExitStack() as held:
        if request.param is running:
            held.enter_context(hold_lock(layout.lock))
        yield layout


@pytest.fixture
def printed(coral: Command) -> Callable[..., object]:
    """What a command prints as JSON."""

    def run(*words: str) -> object:
        code, out, err = coral(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def timeless(data: object) -> object:
    """Without how long ago things were, which differs from one look to the next."""
    if isinstance(data, dict):
        return {name: timeless(inner) for name, inner in data.items() if name != "seconds"}
    return [timeless(inner) for inner in data] if isinstance(data, list) else data


def as_json(data: object) -> object:
    return json.loads(json.dumps(data, default=str))


def test_its_figures_are_those_of_the_commands(made: Layout, printed: Callable[..., object]) -> None:
    run = api.open_run(made.root)
    status = printed("status")
    assert isinstance(status, dict)
    assert timeless(as_json(run.status)) == timeless(status)
    assert run.state == status["state"]
    assert run.is_running == (run.state == "running")
    assert as_json(run.leaderboard.data()) == printed("log", "-n", "0")
    assert as_json(run.attempts.data()) == printed("log", "-n", "0", "--recent")[::-1]  # type: ignore[index]
    assert as_json(run.notes.data()) == printed("notes")[::-1]  # type: ignore[index]
    assert as_json(run.holdout.data()) == status.get("holdout", [])
    (listed,) = printed("runs")  # type: ignore[misc]
    assert (run.task, run.name, str(run.path)) == (listed["task"], listed["run"], str(made.root))
    for one in (run.best, run.lead):
        if one is not None:
            assert as_json(one.attempt) == as_json(run.attempt(one.attempt.number))


def test_best_lead_noise_and_use_are_those_of_the_status(made: Layout, printed: Callable[..., object]) -> None:
    run, status = api.open_run(made.root), printed("status")
    assert isinstance(status, dict)
    if not made.status.read_text().endswith("}"):
        assert (run.noise, run.usage.money) == (None, None)
        assert run.lead is not None
        assert run.best is not None
        assert (run.best.attempt.number, run.best.median, run.baseline) == (4, 2.0, 1.0), "from the records"
        assert run.problems == ["status.json is missing or damaged", "records that cannot be read: 1"]
        return
    assert run.problems == []
    assert (run.direction, run.noise, run.baseline) == (status["direction"], status["noise"], status["baseline"])
    assert run.reason == (status["reason"] or {"text": ""})["text"]
    assert run.lead is not None
    assert (run.lead.attempt.number, run.lead.median) == (status["lead"]["number"], status["lead"]["median"])
    if run.direction == "maximize":
        assert run.best is not None
        assert (run.best.attempt.number, run.best.median) == (status["best"]["number"], status["best"]["median"])
        assert run.best.count == status["best"]["count"]
    spent = status.get("spent", {})
    assert {name: getattr(run.usage, name) for name in SPENT} == {name: spent.get(name) for name in SPENT}
    assert list(run.usage.tokens_unknown_of) == status.get("tokens_unknown_of", [])
    assert list(run.usage.money_unknown_of) == status.get("money_unknown_of", [])
    assert [(one.agent, one.attempts, one.best) for one in run.usage.agents] == [
        (one["name"], one["attempts"], one["best"]) for one in status["agents"]
    ]
    assert run.usage.seconds == status["clock"]


def test_the_curve_is_the_one_that_runs_are_compared_by(made: Layout, printed: Callable[..., object]) -> None:
    copy = made.root.with_name("copy")
    shutil.copytree(made.root, copy)
    compared = printed("compare", str(made.root), str(copy))
    assert isinstance(compared, dict)
    run, row = api.open_run(made.root), compared["runs"][0]
    assert (run.curve.best, run.curve.to_best) == (row["best"], row["seconds_to_best"])
    assert row["seconds"] == (None if run.usage.seconds is None else run.curve.end)


def test_the_curve_has_steps_points_and_a_table(operators_shell: None, tmp_path: Path) -> None:
    curve = api.open_run(finished(tmp_path / "runs").root).curve
    assert [(step.at, step.number, step.value) for step in curve.steps] == [(0, 0, 1), (10, 1, 1.5), (40, 4, 2)]
    assert [point.number for point in curve.points if point.score is None] == [2]
    assert (curve.data()["steps"], curve.data()["has_seed"]) == (curve.steps.data(), True)
    frame = curve.to_pandas()
    assert list(frame.columns) == ["agent", "at", "number", "value"]
    assert frame[frame.agent == ""].value.max() == curve.best
    assert set(frame.agent) == {"", "agent-1", "agent-2"}


def test_tables_have_the_columns_of_the_csv_and_numbers_where_some_are_missing(made: Layout, coral: Command) -> None:
    run = api.open_run(made.root)
    frame = run.leaderboard.to_pandas()
    _, out, _ = coral("log", "-n", "0", "--csv")
    header, *rows = out.splitlines()
    assert list(frame.columns) == header.split(",")
    assert list(frame.number) == [int(row.split(",")[0]) for row in rows]
    every = run.attempts.to_pandas()
    assert every.score.dtype == float
    assert int(every.score.isna().sum()) == sum(one.score is None for one in run.attempts)
    assert str(every.published_at.dtype).endswith("UTC]")
    assert run.notes.to_pandas().shape[0] == len(run.notes)
    assert list(run.holdout.to_pandas().columns) == ["number", "score", "holdout", "reason", "divergence", "by"]
    assert list(run.usage.to_pandas().agent) == [one.agent for one in run.usage.agents]


def test_a_time_in_a_table_is_when_it_was(layout: Layout) -> None:
    run = api.open_run(layout.root)
    moment = run.attempts.to_pandas().published_at[0].to_pydatetime()
    assert abs((datetime.now(UTC) - moment).total_seconds() - 600) < 60


def test_metrics_are_columns_of_their_own(layout: Layout) -> None:
    Store(layout.attempts).publish(attempt(5, 3.0, metrics={"speed": 2.5, "ok": True}))
    frame = api.open_run(layout.root).attempts.to_pandas()
    assert math.isnan(frame["metrics.speed"][0])
    assert frame["metrics.speed"][5] == 2.5


def test_a_run_stays_as_it_was_read_and_refresh_reads_it_again(layout: Layout) -> None:
    run = api.open_run(layout.root)
    assert len(run.attempts) == 5
    Store(layout.attempts).publish(attempt(5, 3.0, verdict=Verdict.NEW_BEST))
    assert len(run.attempts) == 5
    assert len(run.refresh().attempts) == 6


def test_an_agent_sees_no_hold_out(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = held_out(tmp_path / "runs")
    assert len(api.open_run(layout.root).holdout) == 2
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    run = api.open_run(layout.root)
    assert len(run.holdout) == 0
    assert "holdout" not in run.status


def test_an_agent_that_works_alone_sees_its_own_attempts(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.shared_of("agent-1", share=False).mkdir(parents=True)
    monkeypatch.chdir(layout.clone("agent-1"))
    run = api.open_run(layout.root)
    assert {one.agent for one in run.attempts} == {"", "agent-1"}
    assert {line.attempt.agent for line in run.leaderboard} == {"agent-1"}
    with pytest.raises(api.CoralError, match="not yours"):
        run.attempt(1)


def test_what_is_no_run_and_what_nothing_is_left_of_are_refused(layout: Layout, tmp_path: Path) -> None:
    assert api.open_run(layout.root.name).path.resolve() == layout.root.resolve()
    for wrong in ("nothing", tmp_path):
        with pytest.raises(api.CoralError, match="cannot find a run"):
            api.open_run(wrong)
    with pytest.raises(api.CoralError, match="no such attempt"):
        api.open_run(layout.root).attempt(77)
    layout.status.unlink()
    for path in layout.attempts.glob("*.json"):
        path.write_text("")
    with pytest.raises(api.CoralError, match=r"neither its status\.json nor any of its records"):
        api.open_run(layout.root)


def test_rows_are_a_sequence(layout: Layout) -> None:
    rows = api.open_run(layout.root).attempts
    assert isinstance(rows, api.Rows)
    assert [one.number for one in rows[1:3]] == [1, 2]
    assert rows[1:3].data() == rows.data()[1:3]
    assert rows[0] in rows
    assert rows[1:] != rows
    assert hash(rows[:]) == hash(rows)
    assert (repr(rows), repr(rows[:0])) == ("<5 rows of Attempt>", "<0 rows>")
    assert repr(api.open_run(layout.root)).startswith("<run toy/")


def test_without_pandas_it_says_what_to_install(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(api.CoralError, match="pandas is not installed") as refused:
        api.open_run(layout.root).attempts.to_pandas()
    assert "pip install 'pandas" in refused.value.hint
