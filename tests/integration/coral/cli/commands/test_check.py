"""`coral check` runs the public check as the built-in agent does: in an agent's workspace, and on a task's seed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from clones import git, make_run
from files import write_files
from real_runs import coral_process, is_alive, wait_until

from coral.processes.seal import problem
from workspace.seal import Level

CHECK = """
import os
from pathlib import Path
def check(folder):
    print("looking at", os.listdir(folder), "in", os.getcwd())
    (Path(folder) / "left.txt").write_text("left")
    x = float((Path(folder) / "x.txt").read_text())
    if x < 0:
        raise ValueError("x is negative")
    return {"score": x, "slack": [0.5, 9 - x]}
"""
SEALED = [
    pytest.param(level, marks=pytest.mark.skipif(bool(problem(level)), reason=f"NOT RUN: {problem(level)}"))
    for level in (Level.BUBBLEWRAP, Level.LANDLOCK)
]
TASK = "task:\n  name: t\n  description: d\n  check: look.py:check\ngrader:\n  entry: grade.py:grade\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("CORAL_AGENT", raising=False)
    return folder


@pytest.fixture
def clone(tmp_path: Path, temporary: Path, monkeypatch) -> Path:
    """The workspace of an agent; the task has a check."""
    layout = make_run(tmp_path, {"x.txt": "2.5", "sub/look.py": CHECK}, exclude=[])
    layout.check("agent-1").write_text("sub/look.py:check")
    monkeypatch.chdir(layout.clone("agent-1"))
    return layout.clone("agent-1")


def test_it_checks_what_lies_in_a_workspace_and_changes_nothing(clone: Path, temporary, coral, monkeypatch) -> None:
    code, out, _ = coral("check")
    assert code == 0
    assert out.startswith("2.5, 2 constraints kept, least slack 0.5 (sub/look.py:check, ")
    (clone / "x.txt").write_text("9.5")
    monkeypatch.chdir(clone / "sub")
    code, out, _ = coral("check")
    assert code == 1
    assert out.startswith("9.5, 1 of 2 constraints broken, least slack -0.5 (")
    (clone / "x.txt").write_text("-1")
    code, out, _ = coral("check")
    assert code == 1
    assert out.startswith("no score: ValueError: x is negative (")
    assert git(clone, "status", "--porcelain") == "M x.txt"
    assert list(temporary.iterdir()) == []


def test_for_programs_it_prints_one_document_and_the_check_speaks_on_standard_error(clone: Path) -> None:
    done = coral_process("check", "--json", cwd=clone)
    given = json.loads(done.stdout)
    assert given.pop("seconds") > 0
    assert given == {"score": 2.5, "slack": [0.5, 6.5], "ok": True, "error": "", "check": "sub/look.py:check"}
    assert "looking at" in done.stderr
    (clone / "x.txt").write_text("-1")
    done = coral_process("check", "--json", cwd=clone)
    given = json.loads(done.stdout)
    assert (done.returncode, given["score"], given["ok"]) == (1, None, False)
    assert given["error"] == "ValueError: x is negative"


def test_without_a_check_it_says_so(clone: Path, coral) -> None:
    named = clone / ".git" / "coral-check"
    named.write_text("")
    code, out, err = coral("check")
    assert (code, out) == (1, "")
    assert err == 'coral: cannot check: the task has no public check\n  grade what you have: coral eval -m "..."\n'
    named.unlink()
    assert "which check there is cannot be read" in coral("check")[2]
    named.mkdir()
    assert "which check there is cannot be read" in coral("check")[2]


def test_a_check_that_cannot_be_loaded_says_why(clone: Path, coral) -> None:
    (clone / "sub" / "look.py").write_text("def check(:")
    code, _, err = coral("check")
    assert code == 1
    assert err.startswith("coral: cannot check: cannot load the check sub/look.py:check: SyntaxError")


def test_of_a_task_it_checks_the_seed(tmp_path: Path, temporary: Path, monkeypatch, coral) -> None:
    files = {"task.yaml": TASK, "grade.py": "def grade(w): return 1.0", "seed/x.txt": "3", "seed/look.py": CHECK}
    task = write_files(tmp_path / "task", files)
    monkeypatch.chdir(tmp_path)
    assert coral("check", "task")[1].startswith("3, 2 constraints kept")
    monkeypatch.chdir(task / "seed")
    assert coral("check")[1].startswith("3, 2 constraints kept")
    git(task / "seed", "init", "-q")
    git(task / "seed", "add", "-A")
    git(task / "seed", "commit", "-q", "-m", "seed")
    (task / "seed" / "x.txt").write_text("4")
    code, out, err = coral("check")
    assert (code, out[:2]) == (0, "3,")
    assert "only the last commit is used, without 1 changed file: x.txt" in err
    (task / "task.yaml").write_text(TASK.replace("  check: look.py:check\n", ""))
    assert "name a function of the seed in task.check" in coral("check")[2]
    monkeypatch.chdir(tmp_path)
    assert "there is no task.yaml in or above" in coral("check")[2]


HANGING = """
import subprocess, sys, time
def check(folder):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("{at}", "w").write(str(child.pid))
    time.sleep(600)
"""


def test_at_its_limit_the_check_and_what_it_started_end(clone: Path, tmp_path: Path, coral) -> None:
    at = tmp_path / "pid"
    (clone / "sub" / "look.py").write_text(HANGING.format(at=at))
    code, out, _ = coral("check", "--timeout", "5")
    assert code == 1
    assert out.startswith("no score: no answer from the check within 5 s")
    wait_until(lambda: not is_alive(int(at.read_text())), what="the end of the check's own process")


def test_an_interrupt_ends_the_check(clone: Path, tmp_path: Path) -> None:
    at = tmp_path / "pid"
    (clone / "sub" / "look.py").write_text(HANGING.format(at=at))
    command = [sys.executable, "-P", "-m", "coral", "check"]
    checking = subprocess.Popen(command, cwd=clone, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_until(lambda: at.exists() and at.read_text(), what="the check")
    below = psutil.Process(checking.pid).children(recursive=True)
    checking.send_signal(signal.SIGINT)
    out, _ = checking.communicate(timeout=60)
    assert (checking.returncode, out) == (130, b"")
    wait_until(lambda: not any(is_alive(process.pid) for process in below), what="the end of the check")


@pytest.mark.parametrize("level", SEALED)
def test_a_sealed_agent_checks_too_also_after_it_removed_the_name_of_the_check(tmp_path: Path, start, level) -> None:
    script = 'cat >/dev/null; coral check --json >>"$CORAL_RUN/workspace/shared/said"; rm .git/coral-check; sleep 600'
    options = json.dumps({"start": ["/bin/sh", "-c", script]})
    text = f"{TASK}agents:\n  runtime: command\n  options: {options}\nworkspace:\n  seal: {level}\n"
    files = {"task.yaml": text, "grade.py": "def grade(w): return 1.0", "seed/x.txt": "3", "seed/look.py": CHECK}
    run = start(write_files(tmp_path / "task", files))
    said = run.layout.shared / "said"

    def answers(count: int) -> list[str]:
        return wait_until(
            lambda: len(lines := said.read_text().splitlines() if said.exists() else []) >= count and lines
        )

    answers(1)
    run.ask({"type": "restart", "agent": "agent-1"})
    assert [json.loads(line)["score"] for line in answers(2)] == [3.0, 3.0]
