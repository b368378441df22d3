"""`coral compare`: runs side by side, and what cannot be compared."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sample import attempt, make_run, write_events, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.cli.run_data.comparison import outcome_of
from coral.config.load import frozen
from coral.config.model import TaskFile
from coral.reading.run_view import RunView
from workspace.layout import Layout

Shown = Callable[..., str]
UNKNOWN = ["agent-1", "agent-2"]


@pytest.fixture
def other(layout: Layout, tmp_path: Path) -> Layout:
    made = make_run(tmp_path / "runs", scores=(1.0, 1.25, 1.5, 1.75))
    write_status(made, "stopped", spent={"money": 2.0, "tokens": 5000}, failed=0, money_unknown_of=UNKNOWN)
    for number, clock in enumerate((0.0, 10.0, 20.0, 30.0)):
        write_events(made, {"clock": clock, "type": "published", "text": "x", "attempt": number})
    return made


def with_task(layout: Layout, runtime: str = "claude", **budget: object) -> None:
    agents = {"runtime": runtime, "count": 2}
    task = TaskFile.model_validate(
        {
            "task": {"name": "toy", "description": "x"},
            "grader": {"entry": "g.py:grade"},
            "budget": budget,
            "agents": agents,
        }
    )
    layout.task_file.write_text(frozen(layout.root / "task.yaml", task))


def test_results_side_by_side(layout: Layout, other: Layout, shown: Shown) -> None:
    with_task(layout, attempts=10)
    with_task(other, attempts=20)
    said = shown("compare", str(layout.root), str(other.root))
    lines = said.splitlines()
    first, second = (layout.root.name.rpartition("-")[2], other.root.name.rpartition("-")[2])
    assert lines[1].split()[:2] == [first, "dead"]
    assert lines[2].split() == [
        *(second, "stopped", "2", "1.75", "+0.75", "#3", "3", "0", "10", "min", "30", "s"), *("≥$2.00", "5.0k", "0.25")
    ]  # fmt: skip
    row = next(line for line in lines if line.startswith("budget.attempts"))
    assert row.split() == ["budget.attempts", "10", "20"]
    assert sum(line.startswith(("budget.", "grader.", "agents.")) for line in lines) == 1
    assert "Best score over time" in said
    assert "Best score over attempts" in said
    assert said.count(f"━ {first}  ━ {second}") == 2


def test_curves_over_time_and_over_attempts(other: Layout) -> None:
    found = outcome_of(RunView(other))
    assert found.over_time() == [(0.0, 1.0), (10.0, 1.25), (20.0, 1.5), (30.0, 1.75), (600.0, 1.75)]
    assert found.over_attempts() == [(0.0, 1.0), (1.0, 1.25), (2.0, 1.5), (3.0, 1.75), (3.0, 1.75)]


def test_for_programs(layout: Layout, other: Layout, shown: Shown) -> None:
    data = json.loads(shown("compare", str(layout.root), str(other.root), "--json"))
    assert [run["best"] for run in data["runs"]] == [2.0, 1.75]
    assert data["runs"][1]["gain_per_attempt"] == 0.25
    assert data["runs"][1]["seconds_to_best"] == 30.0
    rows = list(csv.DictReader(io.StringIO(shown("compare", str(layout.root), str(other.root), "--csv"))))
    assert [row["best"] for row in rows] == ["2.0", "1.75"]
    assert [row["tokens_unknown_of"] for row in rows] == ["", ""]
    assert [row["money_unknown_of"] for row in rows] == ["", "agent-1 agent-2"]


def test_a_best_that_later_grades_made_worse_than_the_seed_is_no_gain(layout: Layout, other: Layout) -> None:
    for number in (4, 5):
        again = attempt(number, 0.25, kind=Kind.CONFIRM, of=3, tree=f"{3:040x}", verdict=Verdict.WORSE)
        Store(other.attempts).publish(again)
    found = outcome_of(RunView(other))
    assert (found.curve.best, found.gain, found.gain_per_attempt) == (0.25, -0.75, -0.25)
    write_status(layout, direction="minimize")
    lower = outcome_of(RunView(layout))
    assert (lower.curve.best, lower.gain) == (2.0, -1.0), "to minimize, a best of 2 is worse than a seed of 1"


def test_while_the_seed_is_the_best_nothing_is_gained_whatever_its_grades(layout: Layout, tmp_path: Path) -> None:
    made = make_run(tmp_path / "runs", scores=(1.0, 0.5))
    write_status(made, baseline=1.25)
    assert (outcome_of(RunView(made)).gain, outcome_of(RunView(made)).gain_per_attempt) == (0.0, 0.0)


def test_what_an_attempt_gains_is_reckoned_in_the_present_epoch(layout: Layout, other: Layout, shown: Shown) -> None:
    store = Store(other.attempts)
    store.publish(attempt(4, 0.5, kind=Kind.BASELINE, agent="", epoch=2, verdict=Verdict.NEW_BEST))
    store.publish(attempt(5, 0.75, epoch=2, verdict=Verdict.NEW_BEST))
    store.publish(attempt(6, None, epoch=2))
    write_status(other, epoch=2, baseline=0.5, baseline_number=4, attempts=5)
    data = json.loads(shown("compare", str(layout.root), str(other.root), "--json"))
    found = data["runs"][1]
    assert (found["gain"], found["attempts"], found["attempts_of_epoch"]) == (0.25, 5, 2)
    assert found["gain_per_attempt"] == 0.125
    assert [concern for concern in data["concerns"] if other.root.name in concern and "in epoch 2" in concern]


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_run_without_its_status_is_compared_by_its_records(
    content: str | None, layout: Layout, other: Layout, shown: Shown
) -> None:
    write_status(layout, failed=1)
    before = json.loads(shown("compare", str(layout.root), str(other.root), "--json"))["runs"][0]
    layout.status.unlink() if content is None else layout.status.write_text(content)
    after = json.loads(shown("compare", str(layout.root), str(other.root), "--json"))["runs"][0]
    for known in ("best", "seed", "gain", "attempts", "attempts_of_epoch", "failed", "gain_per_attempt", "lead"):
        assert after[known] == before[known], known
    assert (before["failed"], before["seconds"], after["seconds"]) == (1, 600.0, None)
    assert (after["money"], after["tokens"]) == (None, None)
    assert (before["tokens_unknown_of"], after["tokens_unknown_of"]) == ([], None)
    assert (before["money_unknown_of"], after["money_unknown_of"]) == ([], None)
    rows = list(csv.DictReader(io.StringIO(shown("compare", str(layout.root), str(other.root), "--csv"))))
    assert [row["money_unknown_of"] for row in rows] == ["not known", "agent-1 agent-2"]
    row = next(line for line in shown("compare", str(layout.root), str(other.root)).splitlines() if " dead " in line)
    assert " #4  " in row
    assert row.split()[6:9] == ["4", "1", f"≥{row.split('≥')[1].split()[0]}"], "how long it took is a lower bound"
    assert row.count("not known") == 2, "neither money nor tokens"


def test_of_agents_that_need_no_model_no_use_is_unknown(layout: Layout, other: Layout, shown: Shown) -> None:
    with_task(layout, "native")
    layout.status.unlink()
    assert "not known" not in shown("compare", str(layout.root), str(other.root))


def test_a_run_whose_seed_has_failed(layout: Layout, tmp_path: Path, shown: Shown) -> None:
    failed, empty = (make_run(tmp_path / "runs", scores=scores) for scores in ((None, 1.5), (None, None)))
    for one in (failed, empty):
        one.status.write_text("{}")
    said = shown("compare", str(layout.root), str(failed.root), str(empty.root))
    assert "the seed" not in said
    write_status(failed, baseline=None)
    write_events(failed, {"clock": 40.0, "type": "published", "text": "x", "attempt": 1})
    assert outcome_of(RunView(failed)).data()["seconds_to_best"] == 40.0


def test_what_cannot_be_compared(layout: Layout, other: Layout, tmp_path: Path, shown: Shown) -> None:
    here, there = str(layout.root), str(other.root)
    assert "cannot compare 1 runs: it takes 2 to 10" in shown("compare", here, code=1)
    assert f"cannot compare {layout.root.name} with itself" in shown("compare", here, there, here, code=1)
    write_status(other, direction="minimize")
    said = shown("compare", here, there, code=1)
    assert "cannot compare runs of different directions: " in said
    assert f"{other.root.name} is to minimize" in said
    write_status(other, task="another")
    assert shown("compare", here, there).startswith("different tasks (toy, another): ")
    write_status(other, baseline=1.5)
    assert shown("compare", here, there).startswith("the seeds score differently: ")
