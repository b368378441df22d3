"""A hint names a command that the reader can type where it is read."""

import os
import shlex
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from attempts.files import write_json
from coral.cli.run_data.run_lookup import from_here, program, run_of, task_folder
from coral.errors import CoralError
from coral.reading.run_folder import named
from workspace.layout import Layout, create


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, with the script in it and on no search path."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "coral").write_text("#!/bin/sh\n")
    (folder / "coral").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path)
    return folder


def test_what_is_on_the_search_path_needs_no_path(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scripts))
    assert program() == "coral"
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "coral").symlink_to(scripts / "coral")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert program() == "coral"
    other = tmp_path / "other"
    other.mkdir()
    (other / "coral").write_text("#!/bin/sh\n")
    (other / "coral").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert program() == ".venv/bin/coral"


def test_otherwise_it_is_the_script_seen_from_here(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program() == ".venv/bin/coral"
    monkeypatch.chdir(scripts)
    assert program() == "./coral"
    (scripts / "coral").unlink()
    assert program() == "coral"


def test_the_task_around_here_is_the_closest_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "task" / "seed" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert task_folder() is None
    (tmp_path / "task" / "task.yaml").write_text("task:\n")
    assert task_folder() == tmp_path / "task"


@pytest.mark.parametrize("task", ["circle_packing", "circle-packing"])
def test_a_task_is_named_as_in_its_file_or_as_its_folder(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Layout(tmp_path / "runs" / "circle-packing" / "run")
    create(run, [])
    monkeypatch.chdir(tmp_path)
    assert [found.root for found in from_here(task)] == [run.root.resolve()]
    assert named("run", task).root == run.root.resolve()
    monkeypatch.chdir(run.root)
    assert run_of(Namespace(run=None, task=task)).root == run.root.resolve()
    with pytest.raises(CoralError, match="no run of the task 'circle'"):
        run_of(Namespace(run=None, task="circle"))


def test_a_copy_of_a_run_is_found_by_its_task_wherever_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Layout(tmp_path / "runs" / place) for place in ("copied", "other/also-copied")]
    for run in runs:
        create(run, [])
        write_json(run.status, {"task": "circle_packing"}, durable=False)
    monkeypatch.chdir(tmp_path)
    for task in ("circle_packing", "circle-packing"):
        assert [found.root for found in from_here(task)] == [run.root.resolve() for run in runs]
    for task in ("circle", ""):
        with pytest.raises(CoralError, match="cannot find a run named"):
            named("copied", task)


def test_in_the_folder_of_a_task_no_run_of_another_one_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.yaml").write_text("task:\n")
    run = Layout(tmp_path / "runs" / "one" / "run")
    create(run, [])
    monkeypatch.chdir(tmp_path / "two")
    with pytest.raises(CoralError, match="cannot find a run"):
        run_of(Namespace(run=None, task=None))
    monkeypatch.chdir(tmp_path / "one")  # by its name, since the task may have been moved
    assert run_of(Namespace(run=None, task=None)).root == run.root.resolve()
    own = Layout(tmp_path / "two" / "runs" / "any" / "run")
    create(own, [])
    monkeypatch.chdir(tmp_path / "two")
    assert run_of(Namespace(run=None, task=None)).root == own.root.resolve()


def test_a_path_with_a_blank_can_be_typed(scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts.parent.rename(tmp_path / "my env")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    assert shlex.split(program()) == ["my env/bin/coral"]
