"""Removes a folder in which a candidate could do what it liked. Standard library only.

`shutil.rmtree` calls itself for each level, and fails in a folder that is deep. Here one folder is open at a time, and
nothing is renamed: where a quota is used up, files can be deleted and not renamed.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_tree(folder: str | Path) -> None:
    """Remove a folder and all in it; raise no error for what cannot be removed, which stays. A link is removed, and
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
    """A folder on the way from the top to the open one. `folders`: those in it that are still to be removed."""

    name: str  # in the folder above it
    identity: tuple[int, int]
    folders: list[str]


def _empty(path: Path) -> None:
    """Go down into each folder, and up again when it is empty, or has only what cannot be removed."""
    here = _open(path)
    levels = [_Level("", _identity(here), _remove_files(here))]
    try:
        while True:
            if levels[-1].folders:
                name = levels[-1].folders.pop()
                try:
                    below = _open(name, here)
                except OSError:
                    continue
                os.close(here)
                here = below
                levels.append(_Level(name, _identity(here), _remove_files(here)))
            elif len(levels) > 1:
                above = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here, name = above, levels.pop().name
                if _identity(here) != levels[-1].identity:
                    return  # somebody moved the folder: this is not the one that we came from
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=here)
            else:
                return
    finally:
        os.close(here)


def _remove_files(folder: int) -> list[str]:
    """Remove all but the folders in a folder, as far as that is possible; returns their names."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _open(name: str | Path, above: int | None = None) -> int:
    """Open a folder, and take the rights to empty it, which its owner may have given up."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        take_rights(name, above)
        folder = os.open(name, _FOLDER, dir_fd=above)
    if os.fstat(folder).st_mode & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.fchmod(folder, 0o700)
    return folder


def take_rights(name: str | Path, above: int | None = None) -> None:
    """Make a folder of our own user readable, writable and passable for us. A link in its place is not followed, but on
    macOS. OSError if that is not possible. `above`: a descriptor of the folder that it lies in."""
    if not hasattr(os, "O_PATH"):  # macOS
        os.chmod(name, 0o700, dir_fd=above)
        return
    held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        Path(f"/proc/self/fd/{held}").chmod(0o700)
    finally:
        os.close(held)


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
