"""What is wrong with the folders of a run, and which of it `coral doctor --fix` repairs.

Safe is what alters nothing that anybody wrote and can be done again: to make a folder that is missing, and to set the
mode of one that is ours. Stale locks, the index and damaged clones need nothing from here: whoever meets them mends
them.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from coral.preflight.doctor import Check, Health
from workspace.layout import Layout, closed_folders, folders


class FolderFault(StrEnum):
    MISSING = "missing"
    OPEN = "open"  # to others, though it holds answers, keys or conversations
    SHUT = "shut"  # its owner cannot use it
    NO_FOLDER = "no_folder"  # a file or a link is in its place
    OF_ANOTHER = "of_another"
    UNKNOWN = "unknown"  # it cannot be looked at


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
        """Whether it may be repaired without asking."""
        return self.fault in SAFE


def broken_folders(layout: Layout, agents: Iterable[str]) -> list[BrokenFolder]:
    """What is wrong with the folders that a run with these agents has, in an order in which it can be repaired."""
    closed = closed_folders(layout)
    found = ((path, _fault_of(path, path in closed)) for path in folders(layout, agents))
    return [BrokenFolder(path, fault) for path, fault in found if fault is not None]


def check_of(layout: Layout, broken: BrokenFolder, *, fixing: bool) -> Check:
    """The finding. `fixing`: what is safe is repaired next, and needs no advice."""
    how = "" if fixing else "`coral doctor --fix` repairs it"
    advice = how if broken.is_safe else "see what it is: nothing of it is changed"
    return Check("run", Health.NOTE, f"{_name(layout, broken)} {TEXTS[broken.fault]}", advice)


def repaired(layout: Layout, broken: BrokenFolder) -> Check:
    """Repair what is safe; what came of it."""
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
    """What a closed folder may not allow. Where agents have users of their own, their group may pass through it."""
    return 0o077 if seen.st_gid == os.getegid() else 0o067


def _set_mode(path: Path, mode: int) -> None:
    """Set the mode of the folder itself: a link in its place is not followed."""
    if os.chmod in os.supports_follow_symlinks:
        path.chmod(mode, follow_symlinks=False)
        return
    if path.is_symlink():
        raise NotADirectoryError(None, "it is a link")
    path.chmod(mode)


def _name(layout: Layout, broken: BrokenFolder) -> str:
    return broken.path.relative_to(layout.root).as_posix()
