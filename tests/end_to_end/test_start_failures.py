"""A start that cannot work fails with two lines that say why, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import coral_process, is_alive, wait_until, write_task


def attempt(base: Path, *overrides: str, path: str = "") -> subprocess.CompletedProcess[str]:
    (base / "tmp").mkdir(exist_ok=True)
    surroundings = {"PATH": path or os.environ["PATH"], "TMPDIR": str(base / "tmp")}
    return coral_process("start", str(base / "task"), "--detach", *overrides, cwd=base, **surroundings)


def assert_failed(done: subprocess.CompletedProcess[str], base: Path, *said: str) -> None:
    assert done.returncode == 1, done.stderr
    for text in said:
        assert text in done.stderr
    assert "Traceback" not in done.stderr or "the grader's own output" in done.stderr
    assert sorted(path.name for path in base.iterdir()) == ["task", "tmp"]
    assert list((base / "tmp").iterdir()) == []


def test_without_git(tmp_path) -> None:
    write_task(tmp_path / "task", ["hang"])
    (tmp_path / "tmp" / "bin").mkdir(parents=True)
    done = attempt(tmp_path, path=str(tmp_path / "tmp" / "bin"))
    (tmp_path / "tmp" / "bin").rmdir()
    assert_failed(done, tmp_path, "cannot find the program git", "install git")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["agents.runtime=command", "agents.options={start: [no-such-program]}"], ["no-such-program", "not on PATH"]),
        (["workspace.runs=/proc/runs"], ["cannot make a run in /proc/runs"]),
        (
            ["workspace.setup=[echo needs more; exit 3]"],
            ["cannot set up agent-1: `echo needs more; exit 3` ended with exit code 3", "needs more"],
        ),
    ],
)
def test_without_a_program_a_place_or_a_setup_that_works(tmp_path, overrides: list[str], said: list[str]) -> None:
    write_task(tmp_path / "task", ["hang"])
    assert_failed(attempt(tmp_path, *overrides), tmp_path, *said)


def test_without_what_the_grader_imports(tmp_path) -> None:
    write_task(tmp_path / "task", ["hang"], grade="import no_such_module\n\n\ndef grade(workspace):\n    return 1.0\n")
    done = attempt(tmp_path)
    assert_failed(done, tmp_path, "cannot grade the seed", "no_such_module")


def test_runs_that_are_there_already_stay(tmp_path) -> None:
    write_task(tmp_path / "task", ["hang"], grade="def grade(workspace):\n    raise ValueError('no')\n")
    (tmp_path / "runs" / "number" / "another").mkdir(parents=True)
    done = attempt(tmp_path)
    assert done.returncode == 1
    assert [path.name for path in (tmp_path / "runs" / "number").iterdir()] == ["another"]


def test_what_a_setup_leaves_running_ends_with_it(start, tmp_path) -> None:
    """And holds nobody up, though it holds what it was given to write to."""
    mark = tmp_path / "pid"
    run = start(["hang"], overrides=(f"workspace.setup=[sleep 600 & echo $! > {mark}]",), supervise=False)
    assert run.layout.clone("agent-1").is_dir()
    wait_until(lambda: not is_alive(int(mark.read_text())), what="its end")


def test_a_signal_in_the_setup_leaves_nothing(tmp_path) -> None:
    write_task(tmp_path / "task", ["hang"])
    mark = tmp_path / "task" / "pid"
    command = [sys.executable, "-P", "-m", "coral", "start", str(tmp_path / "task"), "--plain"]
    with subprocess.Popen([*command, f"workspace.setup=[echo $$ > {mark}; sleep 600]"], cwd=tmp_path) as child:
        wait_until(lambda: mark.is_file() and mark.read_text().strip(), what="the setup")
        child.send_signal(signal.SIGINT)
        assert child.wait(180) == 130
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


def test_a_run_whose_start_was_killed_is_not_resumed_and_says_why(tmp_path) -> None:
    write_task(tmp_path / "task", ["hang"], grade="import time\n\n\ndef grade(workspace):\n    time.sleep(9)\n")
    command = [sys.executable, "-P", "-m", "coral", "start", str(tmp_path / "task"), "--plain"]
    with subprocess.Popen(command, cwd=tmp_path) as child:
        found = wait_until(lambda: list((tmp_path / "runs").glob("*/*/private/task.yaml")), what="its task")
        child.kill()
    root = found[0].parent.parent
    done = coral_process("resume", "--run", str(root), "--detach", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    why = "it was never made to its end"
    assert f"cannot resume {root.name}: {why}\n  unless its `coral start` is still at it, remove {root}" in done.stderr
    assert "is not running" in coral_process("stop", "--run", str(root), cwd=tmp_path).stdout
