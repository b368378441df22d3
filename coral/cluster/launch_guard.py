"""Runs the program of one launch on a node, and ends all that it has started: at its end, or when the worker that asked
for it ends.

As the guard of a grade it leaves its parent and adopts orphans, see `coral.cluster.guard`. It signals the program
itself: it is the parent, so a number that it signals was given to nobody else meanwhile. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from coral.cluster.guard import children, detach, end_all, own_identity, take_usual_priority, write
from coral.cluster.guard_protocol import kill_marked

ORDER, STATUS, GUARD, LOCK = "order.json", "status.json", "guard.json", "lock"
LOCK_SECONDS = 30.0  # for which the guard of an earlier launch may take to end all
PASSES = 20  # over all processes, until none is left of a launch whose guard was killed
LEFT_SECONDS = 2.0  # for which what the program has left may take to end after SIGTERM


def main(place: str, alive: int, signals: int, done: int) -> None:
    """Run the program, detached from the worker. `place`: the folder with its order; `alive`: a pipe whose other end is
    closed when the worker ends; `signals`: a pipe by which the worker sends the numbers of signals, a byte for each;
    `done`: a pipe that is closed here once the status is written."""
    folder = Path(place)
    order = json.loads((folder / ORDER).read_text("utf-8"))
    (folder / ORDER).unlink()  # its environment has the keys of the user
    detach(folder)
    take_usual_priority()
    try:
        status = _run(folder, order, alive, signals)
    finally:
        end_all()
    if status is not None:
        write(folder / STATUS, status)
    os.close(done)


def _run(folder: Path, order: dict[str, Any], alive: int, signals: int) -> dict[str, Any] | None:
    """Run the program; return how it ended, None if the worker ended first."""
    if not wait_for_lock(folder, alive):
        return {"problem": "processes of its launch before are left on this node"}
    # Before the program is there: whoever finds this guard killed ends what it has started.
    write(folder / GUARD, own_identity())
    try:
        child = _start(order)
    except OSError as error:
        return {"problem": f"cannot start {order['argv'][0]}: {error}"}
    end = os.pidfd_open(child.pid)
    while True:
        ready, _, _ = select.select([alive, signals, end], [], [])
        if alive in ready:
            return None
        if end in ready:
            code = child.wait()
            _end_left()
            return {"code": code}
        for number in os.read(signals, 64):
            _signal(child, number)


def wait_for_lock(folder: Path, alive: int | None = None) -> bool:
    """Wait until no launch has the mirror. With `alive`, keep the lock until this process has ended: two launches of an
    agent never share a mirror. Return False if that does not come, or the worker ends before it."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < until and (alive is None or not select.select([alive], [], [], 0)[0]):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if alive is None:
                os.close(lock)
            return True
        time.sleep(0.02)
    os.close(lock)
    return False


def _start(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    with (
        Path(order["stdin"]).open("rb") as given,
        Path(order["stdout"]).open("ab") as out,
        Path(order["stderr"]).open("ab") as err,
    ):
        return subprocess.Popen(
            [_program(order), *order["argv"][1:]],
            stdin=given, stdout=out, stderr=err, cwd=order["cwd"], env=order["env"], start_new_session=True,
        )  # fmt: skip


def _program(order: dict[str, Any]) -> str:
    """Return the path of the program: the one that the run's machine has, or else the one of its name on this node."""
    first: str = order["argv"][0]
    return first if os.access(first, os.X_OK) else shutil.which(Path(first).name, path=order["env"]["PATH"]) or first


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    """Send SIGINT to the program's group, as a terminal would; any other signal to all that it has started."""
    if number == signal.SIGINT:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        return
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _end_left() -> None:
    """Ask what the program has left to end, and wait a little; `end_all` does the rest."""
    left = descendants(os.getpid())
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + LEFT_SECONDS
    while left and time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)
        left = descendants(os.getpid())


def descendants(pid: int) -> list[int]:
    """Return all processes below this one."""
    found, ahead = [], [pid]
    while ahead:
        below = children(ahead.pop())
        found += below
        ahead += below
    return found


def kill_all(place: Path, root: Path) -> None:
    """Kill all processes of a launch: those with the mark of its folder `place`, or with `root`, the path of its
    mirror, in their environment."""
    for _ in range(PASSES):  # a process may have started another one meanwhile
        if not kill_marked(place, f"CORAL_RUN={root}".encode()):
            return
