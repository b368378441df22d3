"""Keeps a bridge to the cluster: starts one, and another when it ends, until it is closed.

The bridge of an earlier supervisor may still be at work: then the new one waits for its lock, and takes over at once.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from coral.cluster import wire
from coral.errors import CoralError
from coral.extras import installs
from coral.processes import environment

_CALL = "import sys; from coral.cluster.{}_bridge import main; main(*sys.argv[1:])"
_PACKAGES = {"ray": "ray", "slurm": "submitit"}
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
SETTLED_SECONDS = 60.0  # of a bridge's life, after which its end is the first of a new series
END_SECONDS = 5.0
LOG_BYTES = 1 << 20  # of the bridges' log, from which on it begins anew


def _is_served(folder: Path) -> bool:
    """Return whether a bridge is at work there, of an earlier supervisor or of the run that `coral verify` looks at."""
    lock = os.open(folder / wire.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


class BridgeKeeper:
    def __init__(self, folder: Path, executor: str, *arguments: str, bridge: str = "") -> None:
        """Start a bridge. `folder`: where it has its socket; `arguments`: what its `main` gets besides; `bridge`: the
        name of its module, without `_bridge`, if that is not the executor's. CoralError if the executor's package is
        missing."""
        package = _PACKAGES[executor]
        if find_spec(package) is None:
            raise CoralError(f"cannot use a cluster: the package {package} is missing", installs(executor))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_served(folder):
            (folder / wire.TROUBLE).unlink(missing_ok=True)
        self._line = [sys.executable, "-P", "-c", _CALL.format(bridge or executor), str(folder.resolve()), *arguments]
        self._folder = folder
        self._closed, self._changing = threading.Event(), threading.Lock()
        self._child = self._start()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _start(self) -> "subprocess.Popen[bytes]":
        path = self._folder / wire.LOG
        grown = path.exists() and path.stat().st_size > LOG_BYTES
        with path.open("wb" if grown else "ab") as log:  # what the bridge before said is kept
            return subprocess.Popen(
                self._line, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/",
                env=environment.base(), start_new_session=True,
            )  # fmt: skip

    def _keep(self) -> None:
        pause = FIRST_PAUSE
        while True:
            since = time.monotonic()
            self._child.wait()
            if time.monotonic() > since + SETTLED_SECONDS:
                pause = FIRST_PAUSE
            self._closed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            with self._changing:
                if self._closed.is_set():
                    return
                ended = self._child
                with contextlib.suppress(OSError):  # then it is tried again
                    self._child = self._start()
                    _close(ended)

    def answer(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Ask the bridge, which may have to enter the cluster first; return its answer, or a `problem` if there is none
        within `seconds`."""
        until = time.monotonic() + seconds
        while not (problem := wire.trouble(self._folder)) and time.monotonic() < until:
            try:
                return wire.ask(self._folder, message, seconds)
            except OSError:
                time.sleep(0.1)
        return {"problem": problem or f"it did not answer within {seconds:g} s"}

    def close(self) -> None:
        """Let the bridge end. It still serves the grades that run; END_SECONDS later, this method waits no longer."""
        with self._changing:
            self._closed.set()
        with contextlib.suppress(OSError):
            os.write(_pipe(self._child).fileno(), b"end\n")
        _close(self._child)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(END_SECONDS)


def _pipe(child: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert child.stdin is not None
    return child.stdin


def _close(child: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        _pipe(child).close()
