"""Gits that hang, and locks that dead ones left: nobody else waits for them, and a stop ends them."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
from clones import clone, commit, git, layout, template
from real_runs import wait_until

from coral.supervisor.workers import WorkerPool
from workspace import intake
from workspace.cancellation import CancelToken
from workspace.clone_overlay import place
from workspace.errors import GitError
from workspace.git import Git, load
from workspace.history import history, snapshot
from workspace.layout import Layout
from workspace.locks import clear_stale_lock

__all__ = ["clone", "layout", "template"]  # fixtures

pytestmark = pytest.mark.timeout(400)  # two cores may have more to do than this

# A git that hangs, as often as there are folders to be made for it, where it is asked for a certain thing.
WRAPPER = """\
#!/bin/sh
for word; do
  if [ "$word" = {word} ]; then
    for n in {turns}; do
      mkdir {folder}/$n 2> /dev/null && echo $$ > {folder}/$n/pid.part && mv {folder}/$n/pid.part {folder}/$n/pid \\
        && exec sleep 300
    done
  fi
done
exec {git} "$@"
"""


class Hanging:
    """A git on PATH that hangs the first `times` times that `word` is on its command line."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, word: str, times: int) -> None:
        load()  # as a supervisor does at first: GitPython asks a git for its version when it is imported
        self.folder = folder / "hanging"
        self.folder.mkdir()
        turns = " ".join(str(each) for each in range(times))
        text = WRAPPER.format(word=word, turns=turns, folder=shlex.quote(str(self.folder)), git=shutil.which("git"))
        (folder / "bin").mkdir()
        (folder / "bin" / "git").write_text(text)
        (folder / "bin" / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def pids(self) -> list[int]:
        return [int(path.read_text()) for path in self.folder.glob("*/pid")]

    def alive(self) -> list[int]:
        return [pid for pid in self.pids() if is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


ONCE = 'echo here; echo "$$" > x.txt; coral eval -m one; exec sleep 300\n'


@pytest.mark.slow
def test_commits_that_hang_on_their_way_hold_up_no_others_and_no_stop(start, tmp_path, monkeypatch):
    agents = "agents.count=6"
    run = start(ONCE, overrides=(agents, "run.poll_seconds=0.5", "grader.slots=2"), supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "unpack-objects", 4)
    run.supervise()
    wait_until(lambda: len(hanging.alive()) == 4, what="four hanging gits")
    assert run.ask({"type": "tell", "to": "agent-1", "text": "are you there"})["ok"] is True
    # The two others are graded, and their heartbeats go out.
    first = run.wait_for_attempts(2)
    authors = {each.agent for each in first}
    assert len(authors) == 2
    wait_until(lambda: {each["agent"] for each in run.events("interrupted")} >= authors, what="their heartbeats")
    assert len(hanging.alive()) == 4
    run.stop()
    assert hanging.alive() == []
    assert run.left() == []
    kept = {number: each.step.value for number, each in run.fleet().pending.items()}
    assert set(kept.values()) == {"taking"}
    # Nothing was lost: a resume takes them in again.
    run.supervise()
    wait_until(lambda: {each.number for each in run.attempts()} >= set(range(1, 7)), what="all the others")
    run.stop()
    assert {each.verdict.value for each in run.attempts()} == {"improved"}
    assert run.left() == []


@pytest.mark.slow
def test_a_checkout_that_hangs_does_not_outlive_a_stop(start, tmp_path, monkeypatch):
    run = start(ONCE, supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "read-tree", 1)
    run.supervise()
    wait_until(hanging.alive, what="a hanging git")
    run.stop()
    assert hanging.alive() == []
    assert [each.step.value for each in run.fleet().pending.values()] == ["queued"]
    assert run.events("alert") == []


@pytest.mark.slow
def test_a_checkout_that_failed_by_our_fault_is_tried_again(start, tmp_path, monkeypatch):
    run = start(ONCE, supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "read-tree", 1)
    run.supervise()
    (pid,) = wait_until(hanging.alive, what="a hanging git")
    os.kill(pid, signal.SIGKILL)  # as whoever runs out of memory does
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.verdict.value == "improved"
    assert run.fleet().run.voids_in_a_row == 0
    run.stop()
    assert run.left() == []


def test_who_is_stuck_makes_room_and_who_works_does_not() -> None:
    may_end = threading.Event()
    begun: list[int] = []

    def block(number: int) -> int:
        begun.append(number)
        may_end.wait(60)
        return number

    for patience, most, expected in ((1e9, 9, 2), (0.0, 9, 6), (0.0, 4, 4)):
        begun.clear()
        may_end.clear()
        lanes = WorkerPool(width=2, most=most, patience=patience)
        futures: list[Future[int]] = [lanes.submit(block, number) for number in range(6)]
        for _ in range(9):
            lanes.advance()
        wait_until(lambda: len(begun) == expected)  # noqa: B023 - called at once
        assert sum(each.running() for each in futures) == expected
        may_end.set()
        assert [each.result(60) for each in futures] == list(range(6))
        lanes.finish(60)


def test_what_raises_raises_for_whoever_asks() -> None:
    lanes = WorkerPool()
    failed = lanes.submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(60)
    lanes.finish(60)


def test_a_git_on_a_leash_is_ended_and_none_begun_after_it(tmp_path, monkeypatch) -> None:
    hanging = Hanging(tmp_path, monkeypatch, "version", 1)
    lanes, token = WorkerPool(width=1), CancelToken()
    hangs = lanes.submit_cancellable(token, Git(tmp_path).run, "version")
    waits = lanes.submit_cancellable(token, Git(tmp_path).text, "version")
    free = lanes.submit(Git(tmp_path).text, "version")
    wait_until(hanging.alive, what="a hanging git")
    token.cancel()
    for ended in (hangs, waits):
        with pytest.raises(GitError) as found:
            ended.result(60)
        assert found.value.killed
    assert free.result(60).startswith("git version")
    assert hanging.alive() == []
    lanes.finish(60)


def test_at_the_end_what_hangs_is_cut_and_what_waits_does_not_begin(tmp_path, monkeypatch) -> None:
    hanging = Hanging(tmp_path, monkeypatch, "version", 9)
    lanes = WorkerPool(width=1)
    hangs, waits = (lanes.submit(Git(tmp_path).run, "version") for _ in range(2))
    wait_until(hanging.alive, what="a hanging git")
    lanes.finish(0.0)
    assert isinstance(hangs.exception(60), GitError)
    assert not waits.running()
    assert len(hanging.pids()) == 1
    assert hanging.alive() == []


@pytest.mark.slow
@pytest.mark.parametrize("word", ["pack-objects", "unpack-objects"])
def test_a_git_that_hangs_is_not_the_fault_of_whose_commit_it_reads(
    layout: Layout, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    mine = commit(clone, "one")
    with monkeypatch.context() as patch:
        patch.setattr(intake, "TIMEOUT", 1.0)
        hanging = Hanging(tmp_path, patch, word, 1)
        with pytest.raises(GitError) as found:
            intake.take_in(layout.hub, clone, mine, 1)
    assert found.value.timed_out
    assert hanging.alive() == []
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


@pytest.mark.slow
def test_locks_of_dead_gits_in_the_hub_are_cleared(layout: Layout, clone: Path) -> None:
    locks = [layout.hub / name for name in ("refs/attempts/1.lock", "packed-refs.lock", "shallow.lock", "HEAD.lock")]
    for lock in locks:
        lock.parent.mkdir(exist_ok=True)
        lock.touch()
    mine = commit(clone, "one")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine
    assert git(layout.hub, "rev-parse", "refs/attempts/1") == mine
    assert not locks[0].exists()


@pytest.mark.slow
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
            for each in (holder, other):
                comm = Path(f"/proc/{each.pid}/comm")
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


@pytest.mark.slow
def test_locks_of_dead_gits_in_the_history_of_shared_knowledge_are_cleared(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    place(shared, "notes/one.md", "one")
    assert snapshot(shared, "first")
    for name in ("index.lock", "refs/heads/main.lock", "packed-refs.lock", "HEAD.lock"):
        (shared / ".git" / name).touch()
    place(shared, "notes/two.md", "two")
    assert snapshot(shared, "second")
    assert [each.message for each in history(shared)] == ["second", "first"]
