"""Somebody else, whose folder it is not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NOBODY = 65534


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """Let this process read a folder and not write it, in the context; the administrator becomes another user for
    it."""
    with _reachable(folder):
        folder.chmod(0o555)
        try:
            with _somebody_else():
                yield
        finally:
            folder.chmod(0o755)


@contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Give a folder to a user who is no administrator, and be that user in the context, so that what is closed is
    closed."""
    with _reachable(folder):
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                with suppress(FileNotFoundError):  # a worker of this process may replace a file meanwhile
                    os.chown(path, NOBODY, -1, follow_symlinks=False)
        with _somebody_else():
            yield


@contextmanager
def _reachable(folder: Path) -> Iterator[None]:
    above = [path for path in folder.parents if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o055]
    for path in above:
        path.chmod(path.stat().st_mode | 0o055)
    try:
        yield
    finally:
        for path in above:
            path.chmod(path.stat().st_mode & ~0o055)


@contextmanager
def _somebody_else() -> Iterator[None]:
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)
