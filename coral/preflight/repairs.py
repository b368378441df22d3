"""Finds what is wrong with the folders of a run, and repairs for `coral doctor --fix` what is safe to repair.

A repair is safe if it alters nothing that anybody wrote and can be repeated: making a missing folder, and setting the
mode of a folder of this user. Stale locks, the index and damaged clones are not repaired here: the code that uses them
does that.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from coral.preflight.check import Check, Health
from workspace.layout import Layout, closed_folders, folders


class FolderFault(StrEnum):
    MISSING = "missing"
    OPEN = "open"  # others can open it, though it holds answers, keys or conversations
    SHUT = "shut"  # its owner cannot use it
    NO_FOLDER = "no_folder"  # a file or a link is in its place
    OF_ANOTHER = "of_another"
    UNKNOWN = "unknown"  # its state cannot be read


SAFE = {FolderFault.MISSING, FolderFault.OPEN, FolderFault.SHUT}
TEXTS = {
    FolderFault.MISSING: "is missing",
    FolderFault.OPEN: "can be opened by others",
    FolderFault.SHUT: "cannot be used by its owner",
    FolderFault.NO_FOLDER: "is no folder",
    FolderFault.OF_ANOTHER: "belongs to another user",
    FolderFault.UNKNOWN: "cannot be looked at",
}
DONE = {
    FolderFault.MISSING: "was made",
    FolderFault.OPEN: "is closed to others",
    FolderFault.SHUT: "can be used by its owner",
}


@dataclass(frozen=True, slots=True)
class BrokenFolder:
    path: Path
    fault: FolderFault

    @property
    def is_safe(self) -> bool:
        """Whether the folder can be repaired without asking."""
        return self.fault in SAFE


def broken_folders(layout: Layout, agents: Iterable[str]) -> list[BrokenFolder]:
    """Return the folders of a run with these agents that something is wrong with, outer folders first, so that they can
    be repaired in this order."""
    closed = closed_folders(layout)
    found = ((path, _fault_of(path, path in closed)) for path in folders(layout, agents))
    return [BrokenFolder(path, fault) for path, fault in found if fault is not None]


def check_of(layout: Layout, broken: BrokenFolder, *, fixing: bool) -> Check:
    """Return a fault as a finding. `fixing`: whether safe faults are repaired next, so that they need no advice."""
    how = "" if fixing else "`coral doctor --fix` repairs it"
    advice = how if broken.is_safe else "see what it is: nothing of it is changed"
    return Check("run", Health.NOTE, f"{_name(layout, broken)} {TEXTS[broken.fault]}", advice)


def repaired(layout: Layout, broken: BrokenFolder) -> Check:
    """Repair a folder whose fault is safe to repair; return what came of it."""
    path = broken.path
    is_closed = path in closed_folders(layout)
    try:
        if broken.fault is FolderFault.MISSING:
            path.mkdir(mode=0o700 if is_closed else 0o777, parents=True, exist_ok=True)
        else:
            seen = path.lstat()
            mode = stat.S_IMODE(seen.st_mode) | stat.S_IRWXU
            _set_mode(path, mode & ~_too_open(seen) if is_closed else mode)
    except OSError as error:
        return Check("repair", Health.NOTE, f"{_name(layout, broken)} cannot be repaired: {error.strerror}")
    return Check("repair", Health.WELL, f"{_name(layout, broken)} {DONE[broken.fault]}")


def _fault_of(path: Path, is_closed: bool) -> FolderFault | None:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return FolderFault.MISSING
    except OSError:
        return FolderFault.UNKNOWN
    if not stat.S_ISDIR(seen.st_mode):
        return FolderFault.NO_FOLDER
    own = seen.st_uid == os.geteuid()
    if is_closed and seen.st_mode & _too_open(seen):
        return FolderFault.OPEN if own else FolderFault.OF_ANOTHER
    return FolderFault.SHUT if own and seen.st_mode & 0o700 != 0o700 else None


def _too_open(seen: os.stat_result) -> int:
    """Return the bits of a mode that a closed folder must not have. If agents have users of their own, its group may
    pass through it."""
    return 0o077 if seen.st_gid == os.getegid() else 0o067


def _set_mode(path: Path, mode: int) -> None:
    """Set the mode of the folder itself. A link in its place is not followed."""
    if os.chmod in os.supports_follow_symlinks:
        path.chmod(mode, follow_symlinks=False)
        return
    if path.is_symlink():
        raise NotADirectoryError(None, "it is a link")
    path.chmod(mode)


def _name(layout: Layout, broken: BrokenFolder) -> str:
    return broken.path.relative_to(layout.root).as_posix()
