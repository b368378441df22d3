"""Somebody else, whose folder it is not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """A folder that this process may read and not write; the administrator first becomes somebody else."""
    above = [path for path in folder.parents if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o055]
    for path in above:
        path.chmod(path.stat().st_mode | 0o055)
    folder.chmod(0o555)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)
        folder.chmod(0o755)
        for path in above:
            path.chmod(path.stat().st_mode & ~0o055)
