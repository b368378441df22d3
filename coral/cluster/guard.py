"""Runs one grade on a node of a cluster: starts its grader, and ends all that the grader has started, even if the
worker that asked for the grade is killed.

Ray kills the direct children of a worker that ends, and nothing else. So the guard is no child of the worker: it forks
and leaves its parent. It adopts the orphans of the grade, and ends them all at the end of the grade, at its time limit,
or when the worker's end of a pipe is closed. Standard library only: a node has no Coral but what a grade brings with
it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from coral.grader.remove_tree import remove_tree
from coral.processes.result_channel import ResultChannel

ORDER, STATUS, GUARD = "order.json", "status.json", "guard.json"
LARGEST = (1 << 20) + 1  # bytes of a result that are read: one more than `coral.grading.result` accepts
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_KILL_SECONDS = 5.0
_CALL = "import sys; sys.path.insert(0, sys.argv.pop(1)); from coral.grading.runner import wait; wait('')"


def main(place: str, alive: int, done: int) -> None:
    """Run a grade, detached from the worker. `place`: the folder of the grade, with its order; `alive`: a pipe whose
    other end is closed when the worker ends or no longer needs the folder; `done`: a pipe that is closed here once the
    status is written."""
    if os.fork():
        os._exit(0)
    os.setsid()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Ray blocks SIGINT, and programs inherit that
    with contextlib.suppress(PermissionError):  # Ray lowers the priority of its workers, by 15: root may undo that
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    folder = Path(place)
    write(folder / GUARD, {"pid": os.getpid(), "started": started_at(os.getpid())})
    try:
        status = _grade(folder, json.loads((folder / ORDER).read_text("utf-8")), alive)
        if status is not None:
            write(folder / STATUS, status)
            os.close(done)
            _wait_for_end(alive)
    finally:
        end_all()
        remove_tree(folder)


def _grade(folder: Path, order: dict[str, Any], alive: int) -> dict[str, Any] | None:
    """Run the grader and return how it ended; None if the worker ended first. Ends all that the grader started."""
    began = time.monotonic()
    channel = ResultChannel()
    child = _start(folder, order, channel)
    channel.close_given()
    end = os.pidfd_open(child.pid)
    ready, _, _ = select.select([alive, end], [], [], order["timeout"])
    if alive in ready:
        return None
    timed_out = not ready
    code = None if timed_out else child.wait()
    end_all()
    if timed_out:
        child.wait()
    result = _of_file(folder / order["result"]) if order["spec"] is None else channel.result(LARGEST)
    return {
        "code": code,
        "seconds": time.monotonic() - began,
        "result": None if result is None else base64.b64encode(result).decode(),
        "notices": channel.notices(),
    }


def _start(folder: Path, order: dict[str, Any], channel: ResultChannel) -> subprocess.Popen[bytes]:
    streams = [folder / name for name in order["streams"]]
    env, cwd = {**order["env"], "CORAL_DEADLINE": f"{time.time() + order['timeout']:.3f}"}, order["cwd"]
    if order["spec"] is None:
        with streams[0].open("ab") as out, streams[1].open("ab") as err:
            return subprocess.Popen(
                order["argv"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                cwd=cwd, env={**env, "PWD": cwd},
                start_new_session=True,
            )  # fmt: skip
    spec = folder / "spec.json"
    spec.write_text(json.dumps(order["spec"]), encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", _CALL, str(folder / "kit")],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd="/", env=env, pass_fds=channel.given, start_new_session=True,
    )  # fmt: skip
    line = {
        "env": {"PWD": cwd},
        "cwd": cwd,
        "streams": [os.devnull, *map(str, streams)],
        "argument": str(spec),
        "channel": channel.given,
    }
    for path in streams:
        path.touch(mode=0o600)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
        pipe.write(json.dumps(line).encode() + b"\n")
    return child


def _of_file(path: Path) -> bytes | None:
    """Read a file of at most LARGEST bytes; return None if that fails. A candidate may have made it: links are not
    followed, and a pipe is not waited for."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(LARGEST)
    return None


def end_all() -> None:
    """Kill every child until none is left: the orphans of each become children of this process."""
    limit = time.monotonic() + _KILL_SECONDS
    while (left := children(os.getpid())) and time.monotonic() < limit:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        select.select([], [], [], 0.002)


def children(of: int) -> list[int]:
    """Return the children of all threads of a process; none if it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{of}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def _wait_for_end(pipe: int) -> None:
    while os.read(pipe, 4096):
        pass


def write(path: Path, data: dict[str, Any]) -> None:
    """Write JSON to a file, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(data), encoding="utf-8")
    unfinished.replace(path)


def started_at(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
