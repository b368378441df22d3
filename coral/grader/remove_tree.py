"""Removes a folder in which a candidate could do what it liked. Standard library only.

`shutil.rmtree` calls itself for each level, and fails in a folder that is deep. Here one folder is open at a time, and
nothing is renamed: where a quota is used up, files can be deleted and not renamed.
"""

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_tree(folder: str | Path) -> None:
    """Removes a folder and all in it; raises no error for what cannot be removed, which stays. A link is removed, and
    what it leads to is not. Anything else in the folder's place is removed, a pipe too."""
    path = Path(folder)
    with contextlib.suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
        _empty(path)
        path.rmdir()


@dataclass
class _Level:
    """A folder on the way from the top to the open one."""

    name: str  # in the folder above it
    identity: tuple[int, int]
    kept: set[str] = field(default_factory=set)  # the names in it that cannot be removed


def _empty(path: Path) -> None:
    """Goes down into the first folder that is left in each folder, and up again when no other can be removed."""
    here = _open(path)
    levels = [_Level("", _identity(here))]
    try:
        while True:
            kept = levels[-1].kept
            if (name := _remove_files(here, kept)) is not None:
                try:
                    below = _open(name, here)
                except OSError:
                    kept.add(name)
                    continue
                os.close(here)
                here = below
                levels.append(_Level(name, _identity(here)))
            elif len(levels) > 1:
                above = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here, name = above, levels.pop().name
                if _identity(here) != levels[-1].identity:
                    return  # somebody moved the folder: this is not the one that we came from
                try:
                    os.rmdir(name, dir_fd=here)
                except OSError:
                    levels[-1].kept.add(name)
            else:
                return
    finally:
        os.close(here)


def _remove_files(folder: int, kept: set[str]) -> str | None:
    """Removes the files that are listed before the first folder, and returns its name; None if no folder is left."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in kept:
                continue
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            try:
                os.unlink(entry.name, dir_fd=folder)
            except OSError:
                kept.add(entry.name)
    return None


def _open(name: str | Path, above: int | None = None) -> int:
    """Opens a folder, and takes the rights to empty it, which its owner may have given up."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=above)
        folder = os.open(name, _FOLDER, dir_fd=above)
    if os.fstat(folder).st_mode & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.fchmod(folder, 0o700)
    return folder


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
