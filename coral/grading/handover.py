"""What a process of a grade does that was started before it is known which attempt it will grade: it waits for the
order, and writes the result.

This module imports little, since the process of each grade imports it.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import sys

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def wait(group: str, call: Callable[[str, int, int], None], parse: Callable[[str], Any]) -> None:
    """Wait for a line on standard input that says which grade this process is for, then call `call` for it. At an end
    of file, the supervisor has ended before it had recorded this process: then it ends, and nothing is graded. `group`:
    the control group that it enters meanwhile; empty for none. `parse`: parses JSON."""
    entered = _thread.allocate_lock()
    entered.acquire()
    _thread.start_new_thread(_enter, (group, entered))
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            os._exit(125)
        line += piece
    order = parse(line.decode())
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    for number, path in enumerate(order["streams"]):
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW if number else os.O_RDONLY
        stream = os.open(path, flags)
        os.dup2(stream, number)
        os.close(stream)
    sys.argv[1:] = [order["argument"]]
    for descriptor in order["channel"]:
        os.set_inheritable(descriptor, False)
    entered.acquire()
    call(order["argument"], *order["channel"])


def _enter(group: str, entered: _thread.LockType) -> None:
    """Enter the control group. If that fails, the launch's processes are found by its mark alone."""
    if group:
        try:
            with open(f"{group}/cgroup.procs", "wb", buffering=0) as file:
                file.write(b"0")
        except OSError:
            pass
    entered.release()


def hand_over(path: str, memory: int, raw: bytes) -> None:
    """Write a result: into memory for the supervisor, and into a file for another that takes over from it. OSError if
    somebody else has sealed the memory."""
    folder, _, name = path.rpartition("/")
    unfinished = f"{folder}/.{name}.{os.getpid()}"
    with open(unfinished, "wb") as file:
        file.write(raw)  # not synced: what a power failure loses is graded again
    os.replace(unfinished, path)  # noqa: PTH105 - pathlib is slow to import
    os.ftruncate(memory, 0)
    written = 0
    while written < len(raw):
        written += os.pwrite(memory, raw[written:], written)
    _seal(memory)


def _seal(memory: int) -> None:
    """Seal the memory: from then on nobody can change it."""
    seals = ("F_SEAL_WRITE", "F_SEAL_GROW", "F_SEAL_SHRINK", "F_SEAL_SEAL")
    try:
        fcntl.fcntl(memory, fcntl.F_GET_SEALS)
    except (AttributeError, OSError):  # on systems other than Linux it is a file, which nobody can seal
        return
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, sum(getattr(fcntl, name) for name in seals))
