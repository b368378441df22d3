"""Runs are found where they are, never share a folder, and keep every path inside themselves."""

import stat
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from workspace.layout import Layout, create, find_agent, find_run, find_runs, new_run, plain, runs_under


@pytest.fixture
def run(tmp_path: Path) -> Layout:
    layout = new_run(tmp_path / "runs", "packing")
    create(layout, ["agent-1", "agent-2"])
    layout.clone("agent-1").mkdir()
    return layout


def test_starts_in_the_same_instant_are_different_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [new_run(tmp_path / "runs", "packing") for _ in range(50)]
    assert len({run.root for run in runs}) == 50

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 1, 2, 3, 4, 59, 999_999, tz)

    monkeypatch.setattr("workspace.layout.datetime", Stopped)
    names = [new_run(tmp_path / "runs", "packing").root.name for _ in range(3)]
    assert names == ["20260102-030459-lflr", "20260102-030500-0000", "20260102-030500-0001"]


def test_names_of_runs_sort_by_time_and_the_newest_comes_first(tmp_path: Path) -> None:
    runs = [new_run(tmp_path / "runs", task) for task in ("b", "a", "b")]
    for layout in runs:
        create(layout, [])
    assert runs_under(tmp_path / "runs") == runs[::-1]
    assert runs_under(tmp_path / "runs" / "b") == [runs[2], runs[0]]


def test_a_link_to_a_run_is_no_other_run(tmp_path: Path) -> None:
    names = ("20300101-000000-aaaa", "20300102-000000-aaaa")
    older, newer = (Layout(tmp_path / "runs" / "toy" / name) for name in names)
    for layout in (older, newer):
        create(layout, [])
    (tmp_path / "runs" / "toy" / "the-latest").symlink_to(older.root.name)
    assert runs_under(tmp_path / "runs") == [newer, older]


def test_a_run_has_its_folders_and_private_is_private_and_creating_again_keeps_what_is_there(run: Layout) -> None:
    for folder in (run.private, run.logs_of_all, run.states):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for folder in (run.attempts, run.heartbeats, run.agents, run.shared, run.logs("agent-2"), run.state("agent-1")):
        assert folder.is_dir()
    assert run.requests_of("operator").is_dir()
    assert run.replies_to("agent-1").is_dir()
    run.task_file.write_text("kept")
    create(run, ["agent-1", "agent-3"])
    assert run.task_file.read_text() == "kept"
    assert run.logs("agent-3").is_dir()
    assert run.shared_of("agent-1", share=True) == run.shared
    assert run.shared_of("agent-1", share=False) != run.shared_of("agent-2", share=False)
    assert run.prompt("agent-1", 7).name == "0007.prompt.md"
    assert run.output("agent-1", 12345).name == "12345.jsonl"
    assert run.errors("agent-1", 1).parent == run.beats("agent-1").parent == run.logs("agent-1")


def test_an_agent_is_found_from_any_folder_of_its_clone(run: Layout) -> None:
    deep = run.clone("agent-1") / "src" / "deep"
    deep.mkdir(parents=True)
    assert find_agent(deep) == (run, "agent-1")
    assert find_agent(run.agents) is None
    assert find_run(deep) == run
    assert find_run(run.logs("agent-1")) == run
    run.private.rmdir()
    assert find_agent(run.clone("agent-1")) == (run, "agent-1")


def test_the_innermost_run_counts(run: Layout) -> None:
    inner = new_run(run.clone("agent-1") / "runs", "inner")
    create(inner, ["agent-9"])
    inner.clone("agent-9").mkdir()
    assert find_agent(inner.clone("agent-9")) == (inner, "agent-9")
    assert find_run(inner.private) == inner


def test_runs_are_found_from_below_and_beside(run: Layout, tmp_path: Path) -> None:
    (tmp_path / "seed").mkdir()
    assert find_runs(tmp_path / "seed") == tmp_path / "runs"
    assert find_runs(run.clone("agent-1")) == tmp_path / "runs"
    (tmp_path / "empty" / "runs").mkdir(parents=True)
    assert find_runs(tmp_path / "empty") == tmp_path / "runs"
    assert runs_under(tmp_path / "nowhere") == []
    for name in ("attempts", "heartbeats", "workspace"):
        (tmp_path / name).mkdir()
    assert find_run(tmp_path) is None


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "a\0b", "x" * 201])
def test_names_that_would_leave_the_run_are_refused(run: Layout, name: str) -> None:
    with pytest.raises(ValueError):
        plain(name)
    for path in (run.clone, run.logs, run.state, run.requests_of):
        with pytest.raises(ValueError):
            path(name)
