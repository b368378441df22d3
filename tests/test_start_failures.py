"""A start that cannot work fails with two lines that say why, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import write_task

pytestmark = pytest.mark.slow


def start(base: Path, *overrides: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path or os.environ["PATH"], "TMPDIR": str(base / "tmp")}
    (base / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, "-P", "-m", "coral", "start", str(base / "task"), "--detach", *overrides]
    return subprocess.run(command, cwd=base, env=environment, capture_output=True, text=True, timeout=60)


def assert_failed(done: subprocess.CompletedProcess[str], base: Path, *said: str) -> None:
    assert done.returncode == 1, done.stderr
    for each in said:
        assert each in done.stderr
    assert "Traceback" not in done.stderr or "the grader's own output" in done.stderr
    assert sorted(path.name for path in base.iterdir()) == ["task", "tmp"]
    assert list((base / "tmp").iterdir()) == []


def test_without_git(tmp_path: Path) -> None:
    write_task(tmp_path / "task", ["hang"])
    (tmp_path / "tmp" / "bin").mkdir(parents=True)
    done = start(tmp_path, path=str(tmp_path / "tmp" / "bin"))
    (tmp_path / "tmp" / "bin").rmdir()
    assert_failed(done, tmp_path, "cannot find the program git", "install git")


def test_without_the_agents_program(tmp_path: Path) -> None:
    write_task(tmp_path / "task", ["hang"])
    done = start(tmp_path, "agents.runtime=command", "agents.options={start: [no-such-program]}")
    assert_failed(done, tmp_path, "no-such-program", "not on PATH")


def test_without_what_the_grader_imports(tmp_path: Path) -> None:
    write_task(tmp_path / "task", ["hang"], grade="import no_such_module\n\n\ndef grade(workspace):\n    return 1.0\n")
    done = start(tmp_path)
    assert_failed(done, tmp_path, "cannot grade the seed", "no_such_module")


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    write_task(tmp_path / "task", ["hang"])
    done = start(tmp_path, "workspace.runs=/proc/runs")
    assert_failed(done, tmp_path, "cannot make a run in /proc/runs")


def test_runs_that_are_there_already_stay(tmp_path: Path) -> None:
    write_task(tmp_path / "task", ["hang"], grade="def grade(workspace):\n    raise ValueError('no')\n")
    (tmp_path / "runs" / "number" / "another").mkdir(parents=True)
    done = start(tmp_path)
    assert done.returncode == 1
    assert [path.name for path in (tmp_path / "runs" / "number").iterdir()] == ["another"]
