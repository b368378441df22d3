"""The folders of a run that the supervisor writes through.

An agent that is not sealed can rename one and put a link or a file in its place: what the supervisor writes would go
elsewhere.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from attempts.files import hidden
from coral.fleet.events import Restored
from workspace.layout import OPERATOR, Layout
from workspace.owner import set_rights


class RunFolders:
    """Compares the folders with what they were when this supervisor began, and puts them back."""

    def __init__(self, layout: Layout, agents: Iterable[str]) -> None:
        self._layout = layout
        self._agents = frozenset(agents)
        self._known = {folder: os.lstat(folder) for folder in _folders(layout, self._agents)}

    def add_agents(self, agents: Collection[str]) -> None:
        """Watch over the folders of these agents too, if they are new."""
        new = set(agents).difference(self._agents)
        self._agents = self._agents.union(new)
        for folder in _folders(self._layout, new) if new else ():
            self._known.setdefault(folder, os.lstat(folder))

    def restore(self) -> Iterator[Restored]:
        """Put back each folder that is gone or was replaced, and yield a report of it. A folder that was renamed and
        lies beside its place is renamed back; else an empty one is made, with the owner and the rights of the lost one.
        A link or file in its place is kept under a hidden name."""
        if not _is_folder(self._layout.private):
            return  # the whole run was moved: it must not be begun again in this place
        for folder, known in self._known.items():
            found = _what_happened(folder, known.st_ino)
            if not found:
                continue
            with contextlib.suppress(OSError):  # the folder that it lies in is not there: that comes first, next time
                source = self._restore(folder, known)
                self._known[folder] = os.lstat(folder)
                item = f"the folder {folder.relative_to(self._layout.root)}"
                yield Restored(item=item, found=found, source=source)

    def _restore(self, folder: Path, known: os.stat_result) -> str:
        """Put one folder back; returns what it was restored from. A folder that was made anew in its place stays."""
        if _is_folder(folder):
            return "memory"
        if os.path.lexists(folder):
            folder.rename(hidden(folder))
        with os.scandir(folder.parent) as entries:
            same = (entry for entry in entries if entry.inode() == known.st_ino and entry.is_dir(follow_symlinks=False))
            # The number of a folder that is gone may have been given to another one of ours.
            before = next((entry for entry in same if Path(entry.path) not in self._known), None)
        if before is None:
            folder.mkdir(mode=0o700)
            set_rights(folder, known.st_uid, known.st_gid, stat.S_IMODE(known.st_mode))
            return "memory"
        Path(before.path).rename(folder)
        return f"{before.name}, as it was named"


def _folders(layout: Layout, agents: Iterable[str]) -> list[Path]:
    """Return the folders that exist, each one after the folder that it lies in."""
    attempts, replies = layout.attempts, layout.requests / "replies"
    shared = [attempts, attempts / "inbox", attempts / "replies", layout.heartbeats, layout.requests, replies]
    shared += [layout.logs_of_all, layout.root / "grades", layout.agents, layout.states, layout.hub]
    shared += [layout.hub / name for name in ("objects", "objects/pack", "refs", "refs/heads", "refs/attempts")]
    shared += [layout.grader, layout.private / "grading"]  # the journal puts its own back
    own = [
        path
        for agent in agents
        for path in (attempts / "inbox" / agent, attempts / "replies" / agent, layout.logs(agent), layout.state(agent))
    ]
    own += [path for who in (*agents, OPERATOR) for path in (layout.requests_of(who), layout.replies_to(who))]
    return [folder for folder in (*shared, *own) if _is_folder(folder)]


def _is_folder(path: Path) -> bool:
    """Return whether the path is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _what_happened(folder: Path, inode: int) -> str:
    """Return what was done to the folder since its inode was noted; "" if it is still the same."""
    if not os.path.lexists(folder):
        return "was deleted"
    if not _is_folder(folder):
        return "was replaced by a link" if folder.is_symlink() else "was replaced by something else"
    return "" if os.lstat(folder).st_ino == inode else "was replaced"
