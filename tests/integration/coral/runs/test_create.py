"""Making a run: how many git processes it takes, and that a start which fails leaves none behind."""

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from real_runs import write_task

from coral.config.load import load
from coral.errors import CoralError
from coral.runs.create import create_run
from workspace.git import load as load_git
from workspace.gitenv import FLAGS

Install = Callable[[str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a line of shell before every git that is started: it may write to $LOG, which is returned."""
    load_git()  # GitPython asks a git for its version when it is imported

    def place(line: str) -> Path:
        wrapper, log = tmp_path / "bin" / "git", tmp_path / "log"
        wrapper.parent.mkdir()
        git, quoted = shlex.quote(str(shutil.which("git"))), shlex.quote(str(log))
        wrapper.write_text(f'#!/bin/sh\nLOG={quoted}\n{line}\nexec {git} "$@"\n')
        wrapper.chmod(0o755)
        monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
        return log

    return place


@pytest.mark.parametrize("count", [1, 5])
def test_a_clone_is_one_git_process(tmp_path: Path, install: Install, count: int) -> None:
    log = install('echo "$@" >> "$LOG"')
    task = load(write_task(tmp_path / "task", ["hang"]), (f"agents.count={count}",))
    create_run(task, tmp_path / "runs", lambda _: None)
    verbs = Counter(line.split()[len(FLAGS)] for line in log.read_text().splitlines())
    seed = {"init": 1, "add": 1, "write-tree": 1, "commit-tree": 1}
    # One `ls-tree` is for what the hub may hold, the other for the instructions that the seed may bring.
    assert verbs == {**seed, "ls-tree": 2, "read-tree": 1, "checkout": count}


def test_a_seed_that_cannot_be_graded_ends_the_clones_under_way(tmp_path: Path, install: Install) -> None:
    log = install('case "$*" in *checkout*) echo $$ > "$LOG.part"; mv "$LOG.part" "$LOG"; exec sleep 300;; esac')
    folder = write_task(
        tmp_path / "task", ["hang"], command=f"until [ -e {shlex.quote(str(log))} ]; do :; done; exit 1"
    )
    with pytest.raises(CoralError, match="cannot grade the seed"):
        create_run(load(folder, ("agents.count=9",)), tmp_path / "runs", lambda _: None)
    assert not psutil.pid_exists(int(log.read_text()))
    assert not (tmp_path / "runs").exists()
