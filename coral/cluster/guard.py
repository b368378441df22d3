"""Runs one grade on a node of a cluster: starts its grader, and ends all that the grader has started, even if the
worker that asked for the grade is killed.

Ray kills the direct children of a worker that ends, and nothing else. So the guard is no child of the worker: it forks
and leaves its parent. It adopts the orphans of the grade, and ends them all at the end of the grade, at its time limit,
or when the worker's end of a pipe is closed. Standard library only: a node has no Coral but what a grade brings with
it.
"""

from __future__ import annotations

import binascii
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from coral.cluster.guard_protocol import GUARD, IDLE_SECONDS, START, TAKEN, mark_of
from coral.grader.remove_tree import remove_tree
from coral.processes.result_channel import ResultChannel

TYPE_CHECKING = False  # as in typing, which nothing else of a guard needs
if TYPE_CHECKING:
    from typing import Any

ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
LARGEST = (1 << 20) + 1  # bytes of a result that are read: one more than `coral.grading.result` accepts
LOCKS = 10  # RLIMIT_LOCKS, which `resource` does not name
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_KILL_SECONDS = 5.0
_KIT = str(Path(__file__).parents[2])  # where graders find the modules of Coral, too
_CALL = "import sys; sys.path.insert(0, sys.argv.pop(1)); from coral.grading.runner import wait; wait('')"


def main(place: str, alive: int, done: int) -> None:
    """Wait for a grade and run it, detached from the worker. `place`: the folder of the grade; `alive`: a pipe that
    gets TAKEN when a grade has it and then the order, and whose other end is closed when the worker ends or no longer
    needs the folder; `done`: a pipe that gets the status, a line of JSON, see `_status`, and is then closed."""
    folder = Path(place)
    detach(folder)
    try:
        if (status := _status(folder, alive)) is not None:
            with open(done, "wb") as pipe:
                pipe.write(json.dumps(status).encode() + b"\n")
            _wait_for_end(alive)
    finally:
        end_all()
        remove_tree(folder)


def _status(folder: Path, alive: int) -> dict[str, Any] | None:
    """Wait for the order and run the grade; return how it ended, or as `problem` why the guard cannot run it. None if
    there is no order, or the worker ended first."""
    try:
        write(folder / GUARD, own_identity())
        start = json.loads((folder / START).read_text("utf-8"))
        grader = _Grader(folder, start["env"]) if start["python"] else None
        order = _order(alive, *([] if grader is None else [grader.pid]))
        return None if order is None else _grade(folder, order, grader, alive)
    except (OSError, ValueError) as error:  # such as a program that this node lacks, or a full disk
        return {"problem": f"{type(error).__name__}: {error}"}


def own_identity() -> dict[str, Any]:
    """Return how other workers recognize this process."""
    return {"pid": os.getpid(), "started": started_at(os.getpid())}


def detach(folder: Path) -> None:
    """Fork; the parent exits, and the child continues. The child leads a new session and adopts orphans. It blocks no
    signal, and ignores none of ENDING_SIGNALS. It and all processes that it starts later carry the mark of the
    folder."""
    if os.fork():
        os._exit(0)
    os.setsid()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Ray blocks SIGINT, and programs inherit that
    for number in ENDING_SIGNALS:  # as a script ignores SIGINT for what it starts in the background, such as a node
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):  # it may not be so high
        resource.setrlimit(LOCKS, (mark_of(folder), resource.getrlimit(LOCKS)[1]))


def take_usual_priority(*processes: int) -> None:
    """Give this process, and others, the priority that Ray takes from its workers. Root alone may do that."""
    for process in (0, *processes):
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process, 0)


def _order(alive: int, *processes: int) -> dict[str, Any] | None:
    """Wait for the order; return None if the worker ends, or has no grade for IDLE_SECONDS. Until a grade has them,
    this process and `processes` have the priority of Ray's workers: what begins in advance slows down no grade."""
    if not select.select([alive], [], [], IDLE_SECONDS)[0]:
        return None
    take_usual_priority(*processes)
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(alive, 1 << 16)
        if not piece:
            return None
        line += piece
    order: dict[str, Any] = json.loads(line.removeprefix(TAKEN))
    return order


def _grade(folder: Path, order: dict[str, Any], grader: _Grader | None, alive: int) -> dict[str, Any] | None:
    """Run the grader and return how it ended; None if the worker ended first. Ends all that the grader started."""
    began = time.monotonic()
    order["env"]["CORAL_DEADLINE"] = f"{time.time() + order['timeout']:.3f}"
    if grader is None:
        child, channel = _started(folder, order), None
    else:
        child, channel = grader.begin(order), grader.channel
    end = os.pidfd_open(child.pid)
    ready, _, _ = select.select([alive, end], [], [], order["timeout"])
    if alive in ready:
        return None
    timed_out = not ready
    code = None if timed_out else child.wait()
    end_all()
    if timed_out:
        child.wait()
    result = _read_result(folder / order["result"]) if channel is None else channel.result(LARGEST)
    return {
        "code": code,
        "seconds": time.monotonic() - began,
        "result": None if result is None else binascii.b2a_base64(result, newline=False).decode(),
        "notices": "" if channel is None else channel.notices(),
    }


def _started(folder: Path, order: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a grader that is a command."""
    out, err = (folder / name for name in order["streams"])
    with out.open("ab") as stdout, err.open("ab") as stderr:
        return subprocess.Popen(
            order["argv"], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=order["cwd"],
            env={**order["env"], "PWD": order["cwd"]}, start_new_session=True,
        )  # fmt: skip


class _Grader:
    """The interpreter of a Python grader, started before its order comes, because that takes most of the time."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env = folder, env
        self._start()

    def _start(self) -> None:
        self.channel = ResultChannel()
        null = subprocess.DEVNULL
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-u", "-c", _CALL, _KIT],
            stdin=subprocess.PIPE, stdout=null, stderr=null,
            cwd="/", env=self._env, pass_fds=self.channel.given, start_new_session=True,
        )  # fmt: skip
        self.channel.close_given()

    @property
    def pid(self) -> int:
        return self._child.pid

    def begin(self, order: dict[str, Any]) -> subprocess.Popen[bytes]:
        if self._child.poll() is not None:  # it was ended while it waited
            self._start()
        spec, streams = self._folder / "spec.json", [self._folder / name for name in order["streams"]]
        spec.write_text(json.dumps(order["spec"]), encoding="utf-8")
        for path in streams:
            path.touch(mode=0o600)
        line = {
            "env": {**order["env"], "PWD": order["cwd"]},
            "cwd": order["cwd"],
            "streams": [os.devnull, *map(str, streams)],
            "argument": str(spec),
            "channel": self.channel.given,
        }
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
            pipe.write(json.dumps(line).encode() + b"\n")
        return self._child


def _read_result(path: Path) -> bytes | None:
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
