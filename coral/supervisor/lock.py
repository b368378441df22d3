"""One supervisor for each run: an exclusive lock, which the kernel releases when its holder dies, however it dies.

Also finds out whether the folder in which the lock's file lies is still there.
"""

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attempts.files import read_bytes
from coral.errors import CoralError
from workspace.layout import Layout

TRIES = 25
GONE_SECONDS = 5.0  # for so long the run's folder may be gone: a disk may come back


class Lock:
    """The lock, held. The file is locked, not its name: once the file is removed, another supervisor could lock a new
    one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = _lock(path)
        except OSError as error:
            raise CoralError(f"cannot supervise this run: {error}", "see its disk, and whose folder it is") from error

    def restore(self) -> bool:
        """Lock a new file if the file was removed; returns whether it was. CoralError if another supervisor holds the
        lock by now."""
        with contextlib.suppress(OSError):  # the next call tries again; meanwhile nobody else can lock it either
            if self._is_there():
                return False
            before, self._descriptor = self._descriptor, _lock(self._path)
            os.close(before)
            return True
        return False

    def close(self) -> None:
        os.close(self._descriptor)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False


class RunFolderGuard:
    def __init__(self, layout: Layout, lock: Lock, stop: Callable[[], None]) -> None:
        """`stop` is called once, when the folder is gone for good: nobody could find that run to stop it."""
        self._layout = layout
        self._lock = lock
        self._stop = stop
        self._gone_since: float | None = None

    def restore_lock(self, clock: float) -> bool:
        """Lock a new file if the lock's file was removed; returns whether it was. `clock`: the run's, in seconds.
        CoralError if another supervisor has taken the run over."""
        if not is_gone(self._layout):
            self._gone_since = None
            return self._lock.restore()
        if self._gone_since is None:
            self._gone_since = clock
        elif clock - self._gone_since >= GONE_SECONDS:
            self._gone_since = float("inf")
            self._stop()
        return False


def is_gone(layout: Layout) -> bool:
    """Return whether the run's folder was removed or moved. False where the disk does not answer."""
    try:
        layout.private.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[Lock]:
    """Hold the lock. CoralError names the process that holds it already."""
    with contextlib.closing(Lock(path)) as lock:
        yield lock


def _lock(path: Path) -> int:
    """Lock the file and write our pid into it. Returns the open descriptor. CoralError if another process holds the
    lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    from coral.supervisor.clock import wall  # a command that only calls `holder` does not need it

    try:
        if not _try_lock(descriptor):
            raise CoralError(f"cannot supervise this run: {_holder_text(path)}", "`coral attach` watches it")
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": wall()}
        with contextlib.suppress(OSError):  # on a full disk only the text is missing
            os.ftruncate(descriptor, os.pwrite(descriptor, json.dumps(who).encode(), 0))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _try_lock(descriptor: int) -> bool:
    """Try for half a second to lock the file, because a call of `holder` locks it briefly. Returns whether it
    worked."""
    for _ in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def holder(path: Path) -> int | None:
    """Return the pid of the supervisor that holds the lock, 0 if the file does not say it; None if nobody holds it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a pipe
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(path).get("pid", 0)
    else:
        return None
    finally:
        os.close(descriptor)


def _holder_text(path: Path) -> str:
    who = _read_holder(path)
    return f"process {who.get('pid', '?')} on {who.get('host', '?')} supervises it since {who.get('since', '?')}"


def _read_holder(path: Path) -> dict[str, int]:
    try:
        found = json.loads(read_bytes(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
