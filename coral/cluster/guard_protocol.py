"""What a guard and the worker that starts it agree on: names of files in the folder of a grade, bytes, times, a mark.

Standard library only: a guard has it from the files of its grade, and Ray sends it to workers by value.
"""

from __future__ import annotations

import contextlib
import os
import signal
import zlib
from pathlib import Path

START, GUARD = "start.json", "guard.json"
BEGUN = b"b"  # a guard was forked
TAKEN = b"t"  # a grade has the guard: its order, a line of JSON, comes once the files are unpacked
IDLE_SECONDS = 600.0  # for which a guard waits for a grade
FRESH_SECONDS = IDLE_SECONDS / 2  # for which one that waits is used, so that it does not end while it is taken
_LIMIT = b"Max file locks"


def mark_of(folder: Path) -> int:
    """Return the mark of all processes that belong to a folder: the value of their soft limit of file locks, which
    Linux ignores. A program that is started without environment variables keeps it. The supervisor's machine has the
    same for its own processes (`coral.processes.rlimit_tag`), which a node lacks."""
    return 1 << 62 | zlib.crc32(os.fsencode(folder))


def kill_marked(folder: Path, variable: bytes) -> bool:
    """Kill the processes that have the mark of a folder, or a `variable`, as `NAME=value`. Return whether there were
    any."""
    found = False
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if _limit_of(process) == mark_of(folder) or variable in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
                found = True
    return found


def _limit_of(process: Path) -> int:
    """Return the soft limit of file locks of a process; 0 if it has none, or ends, or nobody may see it."""
    with contextlib.suppress(OSError, IndexError):
        _, _, rest = (process / "limits").read_bytes().partition(_LIMIT)
        soft = rest.split(None, 1)[0]
        return int(soft) if soft.isdigit() else 0  # it may be "unlimited"
    return 0
