"""Whether the file that is written to is still the one that was written, by nobody but us.

Agents without a sandbox may reach it. Its name and size are looked at before every line; what it holds is read again
only when the kernel says that somebody changed it.
"""

import os
from pathlib import Path

from coral.errors import CoralError
from coral.journal.lines import Lines


def wrong_with(path: Path, file: int, size: int) -> str:
    """What makes it useless to write on in an open file, in words; empty if nothing. `size`: of what is ours in it."""
    try:
        named, ours = os.lstat(path), os.fstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return "was deleted"
    if (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino):
        return "was replaced"
    return "was cut" if ours.st_size < size else ""


def seen(file: int) -> tuple[int, int]:
    """By which it is noticed that somebody changed it: its size, and when that was. Nobody can set the time back."""
    found = os.fstat(file)
    return found.st_size, found.st_ctime_ns


def is_as_written(path: Path, size: int, checksum: int) -> bool:
    """Whether the first `size` bytes are the lines that have this checksum."""
    lines = Lines(path, may_be_torn=True)
    try:
        for _ in lines.raw():
            if lines.end >= size:
                break
    except CoralError:
        return False
    return (lines.end, lines.sum) == (size, checksum)
