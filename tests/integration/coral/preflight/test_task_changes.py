"""What has changed in a task's folder since a run started is told when the run is resumed: it uses its own copies."""

import json
import shutil
from pathlib import Path

import pytest
from clones import git
from files import write_files

from coral.cli import main
from coral.config.load import Config, load, load_frozen
from coral.preflight.task_changes import seed_change, task_changes
from coral.runs.create import create_run
from coral.runs.reload import stage
from workspace.layout import Layout

TASK = """\
task: {name: t, description: d}
grader: {entry: "grade.py:grade", private: [data]}
agents: {runtime: scripted, options: {script: [hang]}}
"""
GRADE = "def grade(folder):\n    return 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"task.yaml": TASK, "grade.py": GRADE, "data/hidden.csv": "1", "seed/a.txt": "1"}
    return write_files(tmp_path / "task", files)


@pytest.fixture
def layout(folder: Path, tmp_path: Path) -> Layout:
    return create_run(load(folder, ("budget.attempts=3",)), tmp_path / "runs", lambda _: None)


def changed(layout: Layout) -> list[str]:
    return task_changes(layout, load_frozen(layout.task_file))


def test_nothing_has_changed_since_a_start_with_overrides(layout: Layout) -> None:
    assert changed(layout) == []


@pytest.mark.parametrize("name", ["task.yaml", "grade.py", "data/hidden.csv", "seed/a.txt"])
@pytest.mark.parametrize("how", ["edited", "removed"])
def test_each_changed_file_is_named(layout: Layout, folder: Path, name: str, how: str) -> None:
    path = folder / name
    path.write_text(f"{path.read_text()}\n")
    if how == "removed":
        path.unlink()
    # Without its task.yaml the folder is no task any more; an empty seed is none either.
    expected = {"task.yaml": [], "seed/a.txt": ["seed"]}.get(name, [name]) if how == "removed" else [name]
    assert changed(layout) == expected


@pytest.mark.parametrize("is_repository", [False, True])
def test_a_seed_that_has_changed_since_the_last_run_is_told(folder: Path, tmp_path, capsys, is_repository) -> None:
    runs, seed = tmp_path / "runs", folder / "seed"
    if is_repository:
        commit(seed)
    assert seed_change(load(folder), runs) == ""
    layout = create_run(load(folder, ("budget.attempts=3",)), runs, lambda _: None)
    assert seed_change(load(folder), runs) == ""
    write_files(seed, {"a.txt": "2", "b.txt": "1"})
    if is_repository:
        assert seed_change(load(folder), runs) == ""  # the next run would not see it either
        commit(seed)
    told = f"the seed has changed since the run {layout.root.name}: a.txt and b.txt"
    assert seed_change(load(folder), runs) == told
    main(["validate", str(folder), "--json", f"workspace.runs={runs}"])
    (check,) = (check for check in json.loads(capsys.readouterr().out)["checks"] if check["name"] == "seed")
    assert check["details"] == [told]


def commit(folder: Path) -> None:
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        git(folder, *words)


def test_a_file_that_is_added_to_private_data_is_a_change_and_what_no_run_copies_is_none(layout, folder) -> None:
    (folder / "data" / "__pycache__").mkdir()
    (folder / "data" / "__pycache__" / "x.pyc").write_text("1")
    assert changed(layout) == []
    (folder / "data" / "more").mkdir()
    (folder / "data" / "more" / "case9.json").write_text("1")
    assert changed(layout) == ["data/more/case9.json"]


def test_a_task_that_is_gone_has_not_changed(layout: Layout, folder: Path) -> None:
    shutil.rmtree(folder)
    assert changed(layout) == []


def test_resume_says_that_it_uses_the_copies(layout: Layout, folder: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coral.cli.commands.resume.watch", lambda *_: 0)
    (folder / "grade.py").write_text(f"{GRADE}\n")
    assert main(["resume", "--run", str(layout.root)]) == 0
    assert "this run continues with its own copy of grade.py, changed since" in capsys.readouterr().err
    (folder / "grade.py").write_text(GRADE)
    assert main(["resume", "--run", str(layout.root)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["--reload"], ["budget.money=500"]])
def test_a_resume_with_a_larger_budget_is_asked_for_as_a_start_is(
    layout: Layout, folder: Path, tmp_path: Path, capsys, monkeypatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coral.cli.commands.resume.watch", lambda *_: 0)
    monkeypatch.setattr("coral.cli.commands.start.ask_for_cost", lambda *_, **__: None)
    asked: list[tuple[float | None, str, bool]] = []

    def ask(config: Config, _: Path, verb: str, *, agreed: bool) -> None:
        asked.append((config.budget.money, verb, agreed))

    monkeypatch.setattr("coral.cli.commands.resume.ask_for_cost", ask)
    monkeypatch.setattr("coral.cli.commands.resume.check_enforceable", lambda *_: None)
    monkeypatch.setattr("coral.cli.commands.resume._stage", lambda *_: None)
    (folder / "task.yaml").write_text(f"{TASK}budget: {{money: 500}}\n")
    assert main(["resume", "--run", str(layout.root), *words]) == 0
    assert main(["resume", "--run", str(layout.root), *words, "--yes"]) == 0
    assert asked == [(500.0, "resume", False), (500.0, "resume", True)]


def test_a_reload_that_was_interrupted_is_told_and_completed_and_an_override_that_needs_one_is_refused(
    layout: Layout, folder: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    watched: list[tuple[object, ...]] = []
    monkeypatch.setattr("coral.cli.commands.resume.watch", lambda *given: watched.append(given[2:4]) or 0)
    again = ["resume", "--run", str(layout.root)]
    assert main([*again, "grader.direction=minimize"]) == 1
    assert "grader.direction=minimize changes what scores mean" in (said := capsys.readouterr().err)
    assert "add --reload" in said
    (folder / "grade.py").write_text("def grade(folder):\n    return 2\n")
    stage(layout, load(folder), lambda _: None)
    assert main([*again, "budget.hours=2"]) == 0
    said = capsys.readouterr().err
    assert "epoch 2 begins (an interrupted reload is completed): the seed scores 2 now" in said
    assert "own copy" not in said
    assert watched == [(("budget.hours=2",), None)]


@pytest.mark.parametrize("override", ["agents.options.script=gone.json", "agents.options.pace=fast"])
def test_a_resume_with_an_option_that_a_start_refuses_is_refused(
    layout: Layout, tmp_path: Path, capsys, monkeypatch, override: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coral.cli.commands.resume.watch", lambda *_: 0)
    assert main(["resume", "--run", str(layout.root), override]) == 1
    why, hint = capsys.readouterr().err.splitlines()
    assert why.startswith("coral: cannot start scripted: ")
    assert hint == "  see runtime and options under agents in task.yaml"
