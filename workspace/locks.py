"""Locks in an agent's clone: Coral's own, which ends with the process that holds it, and git's, which a killed git
leaves behind.

A lock file of git is removed only after it was unchanged for a while, with no living git in that clone.
"""

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from workspace.errors import LockedError

_UNCHANGED = 0.3  # seconds: longer than a git takes from its lock to being seen in the process table
_PATIENCE = 60.0  # seconds


@contextlib.contextmanager
def one_at_a_time(repository: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Hold the clone's lock for one command of Coral; two at once would collide on git's index. LockedError after
    `patience` seconds."""
    deadline = time.monotonic() + patience
    try:
        # Without O_NONBLOCK, a pipe in its place would block us for ever.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.fdopen(os.open(repository / "coral.lock", flags, 0o644), "w")
    except OSError as error:
        raise LockedError(f"cannot use the repository {repository}: {error.strerror}", "is its .git gone?") from error
    with file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LockedError("another coral command is at work in this clone", "wait for it to end") from None
                time.sleep(0.01)
        yield


def clear_stale_lock(
    repository: Path, name: str = "index.lock", patience: float = _PATIENCE, *, whose: str = ""
) -> None:
    """Return once the lock file `name` is gone: wait for the git that holds it, or remove it if that git is dead.
    LockedError after `patience` seconds.

    `whose`: count only git processes with this argument, where many work in one repository.
    """
    lock = repository / name
    deadline = time.monotonic() + patience
    seen, since = _mark(lock), time.monotonic()
    while seen is not None:
        if _git_works_in(repository, whose):
            since = time.monotonic()
            if since > deadline:
                raise LockedError(f"cannot get {lock}: git is at work in this clone", "wait for it, or end it")
        if time.monotonic() - since > _UNCHANGED:
            lock.unlink(missing_ok=True)
            return
        time.sleep(0.02)
        if (now := _mark(lock)) != seen:
            seen, since = now, time.monotonic()


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _git_works_in(repository: Path, whose: str) -> bool:
    """Return whether a git process has its working directory in the clone. A zombie has none, so it does not count."""
    home = repository.resolve().parent
    if not Path("/proc/self").is_dir():
        return _any_git()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                if (process / "comm").read_bytes().startswith(b"git"):
                    arguments = (process / "cmdline").read_bytes().split(b"\0")
                    if (process / "cwd").readlink().is_relative_to(home) and (not whose or whose.encode() in arguments):
                        return True
    return False


def _any_git() -> bool:
    """Return whether any git runs, for a system that does not show the working directory of a process."""
    listing = subprocess.run(["ps", "-axo", "stat=,comm="], capture_output=True, text=True, check=False).stdout
    rows = [line.split(None, 1) for line in listing.splitlines()]
    return any(not row[0].startswith("Z") and Path(row[-1]).name.startswith("git") for row in rows if row)
