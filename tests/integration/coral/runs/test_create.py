"""Making a run: how many git processes it takes, and that a start which fails leaves none behind."""

import os
import shlex
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import Future
from types import FrameType

import psutil
import pytest
from clones import verbs, wrap_git
from files import write_files
from real_runs import write_task

from coral.config.load import load
from coral.errors import CoralError
from coral.preflight.task_check import quick_findings
from coral.processes import received_signals
from coral.runs.create import _result, create_run


@pytest.mark.parametrize("count", [1, 5])
def test_a_clone_is_one_git_process(tmp_path, monkeypatch, count: int) -> None:
    log = wrap_git(tmp_path, monkeypatch)
    task = load(write_task(tmp_path / "task", ["hang"]), (f"agents.count={count}",))
    create_run(task, tmp_path / "runs", lambda _: None)
    seed = {"init": 1, "add": 1, "write-tree": 1, "commit-tree": 1, "pack-objects": 1}
    # One `ls-tree` is for what the hub may hold, the other for the instructions that the seed may bring.
    assert Counter(verbs(log)) == {**seed, "ls-tree": 2, "read-tree": 1, "checkout": count}


def test_a_seed_that_cannot_be_graded_ends_the_clones_under_way(tmp_path, monkeypatch) -> None:
    hang = 'case "$*" in *checkout*) echo $$ > "$LOG.$$"; mv "$LOG.$$" "$LOG"; exec sleep 300;; esac'
    log = wrap_git(tmp_path, monkeypatch, hang)
    folder = write_task(
        tmp_path / "task", ["hang"], command=f"until [ -e {shlex.quote(str(log))} ]; do :; done; exit 1"
    )
    with pytest.raises(CoralError, match="cannot grade the seed"):
        create_run(load(folder, ("agents.count=9",)), tmp_path / "runs", lambda _: None)
    assert not psutil.pid_exists(int(log.read_text()))
    assert not (tmp_path / "runs").exists()


def test_an_interrupted_wait_for_a_thread_leaves_no_lock_taken() -> None:
    """Or that thread, and whoever waits for its end, would hang."""
    work: Future[int] = Future()

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        """As soon as any condition's lock is taken."""
        if event == "c_return" and (frame.f_code.co_name, frame.f_globals["__name__"]) == ("__enter__", "threading"):
            os.kill(os.getpid(), signal.SIGINT)

    def wait() -> None:
        sys.setprofile(interrupt)
        _result(work)

    later = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    later.start()
    try:
        with received_signals.hold(), pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        sys.setprofile(None)
        later.cancel()
        later.join()
    thread = threading.Thread(target=work.set_result, args=(1,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_a_checklist_beside_the_task_is_the_runs(tmp_path) -> None:
    folder = write_task(tmp_path / "task", ["hang"])
    plain = create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert (plain.root / "workspace/shared/HEARTBEAT.md").read_text().startswith("# Checklist\n")
    write_files(folder, {"HEARTBEAT.md": "- Is the queue empty?\n"})
    own = create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert (own.root / "workspace/shared/HEARTBEAT.md").read_text() == "- Is the queue empty?\n"
    assert "is your HEARTBEAT.md" in quick_findings(load(folder), tmp_path)[-2].details[0]


@pytest.mark.parametrize("kind", ["pipe", "folder", "long", "bytes"])
def test_a_checklist_that_is_no_text_is_refused(tmp_path, kind: str) -> None:
    folder = write_task(tmp_path / "task", ["hang"])
    path = folder / "HEARTBEAT.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "long":
            path.write_text("x" * 20_001)
        case _:
            path.write_bytes(b"\xff")
    with pytest.raises(CoralError, match="cannot read the checklist: "):
        create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert not (tmp_path / "runs").exists()
    assert [finding.name for finding in quick_findings(load(folder), tmp_path) if not finding.ok] == ["heartbeats"]
