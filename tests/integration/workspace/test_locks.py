"""Locks of dead gits are cleared; those of living ones, and our own, are waited for."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from clones import commit, git
from real_runs import wait_until

from workspace import intake
from workspace.clone_overlay import place
from workspace.errors import LockedError
from workspace.gitenv import environment, identity
from workspace.history import history, snapshot
from workspace.layout import Layout
from workspace.locks import clear_stale_lock, one_at_a_time


def test_locks_of_dead_gits_in_the_hub_are_cleared(layout: Layout, clone: Path) -> None:
    locks = [layout.hub / name for name in ("refs/attempts/1.lock", "packed-refs.lock", "shallow.lock", "HEAD.lock")]
    for lock in locks:
        lock.parent.mkdir(exist_ok=True)
        lock.touch()
    mine = commit(clone, "one")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine
    assert git(layout.hub, "rev-parse", "refs/attempts/1") == mine
    assert not locks[0].exists()


def test_a_lock_of_a_living_git_is_waited_for_and_others_at_work_there_do_not_count(layout: Layout) -> None:
    """`git` is what a process is called here, and its command line says what it is at."""
    name = "refs/attempts/1"
    lock = layout.hub / f"{name}.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.touch()
    sleeper = [sys.executable, "-c", "import ctypes, time; ctypes.CDLL(None).prctl(15, b'git'); time.sleep(600)"]
    home = layout.hub.parent
    with subprocess.Popen([*sleeper, name], cwd=home) as holder, subprocess.Popen(sleeper, cwd=home) as other:
        try:
            for process in (holder, other):
                comm = Path(f"/proc/{process.pid}/comm")
                wait_until(lambda: comm.read_text() == "git\n", what="its name")  # noqa: B023 - called at once
            cleared = threading.Thread(
                target=clear_stale_lock, args=(layout.hub, f"{name}.lock"), kwargs={"whose": name}
            )
            cleared.start()
            cleared.join(1)
            assert cleared.is_alive()
            assert lock.exists()
            holder.kill()
            cleared.join(60)
            assert not cleared.is_alive()
            assert not lock.exists()
            assert other.poll() is None
        finally:
            holder.kill()
            other.kill()


def test_locks_of_dead_gits_in_the_history_of_shared_knowledge_are_cleared(tmp_path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    repository = tmp_path / "history.git"
    place(shared, "notes/one.md", "one")
    assert snapshot(shared, repository, "first")
    for name in ("index.lock", "refs/heads/main.lock", "packed-refs.lock", "HEAD.lock"):
        (repository / name).touch()
    place(shared, "notes/two.md", "two")
    assert snapshot(shared, repository, "second")
    assert [change.message for change in history(repository)] == ["second", "first"]


def test_the_lock_of_a_living_git_stays_and_that_of_a_dead_one_is_removed(clone: Path, tmp_path) -> None:
    (clone / "a.txt").write_text("one\n")
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.01; done\necho text > "$1"\n')
    editor.chmod(0o755)
    variables = {**environment(**identity("a")), "GIT_EDITOR": str(editor)}
    with subprocess.Popen(["git", "commit", "-q", "-a"], cwd=clone, env=variables, start_new_session=True) as held:
        wait_until((clone / ".git" / "index.lock").exists)
        with pytest.raises(LockedError, match="git is at work"):
            clear_stale_lock(clone / ".git", patience=0.5)
        assert (clone / ".git" / "index.lock").exists()
        os.killpg(held.pid, signal.SIGKILL)
    assert (clone / ".git" / "index.lock").exists()
    clear_stale_lock(clone / ".git")
    assert not (clone / ".git" / "index.lock").exists()


def test_waiting_for_another_command_has_an_end(clone: Path) -> None:
    with one_at_a_time(clone / ".git"), pytest.raises(LockedError, match="another coral command"):  # noqa: SIM117
        with one_at_a_time(clone / ".git", patience=0.05):
            pass
