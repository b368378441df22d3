"""Gits that hang: no other work waits for them, and a stop ends them."""

import os
import shlex
import signal
from pathlib import Path

import pytest
from clones import commit, wrap_git
from real_runs import is_alive, wait_until

from attempts.record import UNSCORED
from coral.supervisor.workers import WorkerPool
from workspace import intake
from workspace.cancellation import CancelToken
from workspace.errors import GitError
from workspace.git import Git

pytestmark = pytest.mark.timeout(400)  # two cores may have more to do than this

# As often as there are folders to be made for it, where a git is asked for a certain thing.
HANG = """\
for word; do
  if [ "$word" = {word} ]; then
    for n in {turns}; do
      mkdir {folder}/$n 2> /dev/null && echo $$ > {folder}/$n/pid.part && mv {folder}/$n/pid.part {folder}/$n/pid \\
        && exec sleep 300
    done
  fi
done"""


class Hanging:
    """A git on PATH that hangs the first `times` times that `word` is on its command line."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, word: str, times: int) -> None:
        self.folder = folder / "hanging"
        self.folder.mkdir()
        turns = " ".join(map(str, range(times)))
        wrap_git(folder, monkeypatch, HANG.format(word=word, turns=turns, folder=shlex.quote(str(self.folder))))

    def pids(self) -> list[int]:
        return [int(path.read_text()) for path in self.folder.glob("*/pid")]

    def alive(self) -> list[int]:
        return [pid for pid in self.pids() if is_alive(pid)]


ONCE = 'echo here; echo "$$" > x.txt; coral eval -m one; exec sleep 300\n'


def test_commits_that_hang_on_their_way_hold_up_no_others_and_no_stop(start, tmp_path, monkeypatch):
    agents = "agents.count=6"
    run = start(ONCE, overrides=(agents, "run.poll_seconds=0.5", "grader.slots=2"), supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "unpack-objects", 4)
    run.supervise()
    wait_until(lambda: len(hanging.alive()) == 4, what="four hanging gits")
    assert run.ask({"type": "tell", "to": "agent-1", "text": "are you there"})["ok"] is True
    # The two others are graded, and their heartbeats go out.
    first = run.wait_for_attempts(2)
    authors = {attempt.agent for attempt in first}
    assert len(authors) == 2
    wait_until(lambda: {event["agent"] for event in run.events("interrupted")} >= authors, what="their heartbeats")
    assert len(hanging.alive()) == 4
    run.stop()
    assert hanging.alive() == []
    assert run.left() == []
    kept = {number: pending.step.value for number, pending in run.fleet().pending.items()}
    assert set(kept.values()) == {"taking"}
    # Nothing was lost: a resume takes them in again.
    run.supervise()
    wait_until(lambda: {attempt.number for attempt in run.attempts()} >= set(range(1, 7)), what="all the others")
    run.stop()
    assert not UNSCORED & {attempt.verdict for attempt in run.attempts()}


def test_a_checkout_that_hangs_does_not_outlive_a_stop(start, tmp_path, monkeypatch):
    run = start(ONCE, supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "read-tree", 1)
    run.supervise()
    wait_until(hanging.alive, what="a hanging git")
    run.stop()
    assert hanging.alive() == []
    assert [pending.step.value for pending in run.fleet().pending.values()] == ["queued"]
    assert run.events("alert") == []


def test_a_checkout_that_failed_by_our_fault_is_tried_again(start, tmp_path, monkeypatch):
    run = start(ONCE, supervise=False)
    hanging = Hanging(tmp_path, monkeypatch, "read-tree", 1)
    run.supervise()
    (pid,) = wait_until(hanging.alive, what="a hanging git")
    os.kill(pid, signal.SIGKILL)  # as whoever runs out of memory does
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.verdict.value == "new best"
    assert run.fleet().run.voids_in_a_row == 0


def test_a_cancelled_git_is_killed_and_none_is_started_after_it(tmp_path, monkeypatch) -> None:
    hanging = Hanging(tmp_path, monkeypatch, "version", 1)
    workers, token = WorkerPool(width=1), CancelToken()
    hangs = workers.submit_cancellable(token, Git(tmp_path).run, "version")
    waits = workers.submit_cancellable(token, Git(tmp_path).text, "version")
    free = workers.submit(Git(tmp_path).text, "version")
    wait_until(hanging.alive, what="a hanging git")
    token.cancel()
    for ended in (hangs, waits):
        with pytest.raises(GitError) as found:
            ended.result(60)
        assert found.value.killed
    assert free.result(60).startswith("git version")
    assert hanging.alive() == []
    workers.finish(60)


def test_at_the_end_a_hanging_git_is_killed_and_waiting_work_does_not_begin(tmp_path, monkeypatch) -> None:
    hanging = Hanging(tmp_path, monkeypatch, "version", 9)
    workers = WorkerPool(width=1)
    hangs, waits = (workers.submit(Git(tmp_path).run, "version") for _ in range(2))
    wait_until(hanging.alive, what="a hanging git")
    workers.finish(0.0)
    assert isinstance(hangs.exception(60), GitError)
    assert not waits.running()
    assert len(hanging.pids()) == 1
    assert hanging.alive() == []


@pytest.mark.parametrize("word", ["pack-objects", "unpack-objects"])
def test_a_git_that_hangs_is_not_the_fault_of_whose_commit_it_reads(layout, clone, tmp_path, monkeypatch, word) -> None:
    mine = commit(clone, "one")
    with monkeypatch.context() as patch:
        patch.setattr(intake, "TIMEOUT", 1.0)
        hanging = Hanging(tmp_path, patch, word, 1)
        with pytest.raises(GitError) as found:
            intake.take_in(layout.hub, clone, mine, 1)
    assert found.value.timed_out
    assert hanging.alive() == []
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine
