"""Notifications of the folders that agents and the operator write in. They only wake the loop and say where to look.

The truth is what a poll finds: a lost notification costs time, never a submission. Where a folder cannot be watched
the run goes on at the pace of the poll.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

_RELEVANT = frozenset({"created", "moved", "closed"})
# Nothing else is asked of the system: every look into a folder opens and closes it, and to be told of our own looks
# into a thousand of them would cost more than the looks.
_ASKED: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileClosedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]


class FolderWatch:
    """One recursive watch per folder; `ring` is called for every file that came."""

    def __init__(self, folders: tuple[Path, ...], ring: Callable[[], None]) -> None:
        self._folders = folders
        self._ring = ring
        self._observer: BaseObserver | None = None
        self._inodes: dict[Path, int] = {}
        self._touched: set[Path] = set()
        self._lock = threading.Lock()
        self._lost = threading.Event()
        self._lack = ""

    def take(self) -> frozenset[Path]:
        """The folders that something came into since the last call."""
        with self._lock:
            touched, self._touched = frozenset(self._touched), set()
        return touched

    def keep_alive(self) -> str:
        """Start watching, or start again what has died. Returns what is lacking, or an empty text."""
        if self._observer is not None and self._is_healthy(self._observer):
            return self._lack
        self.close()
        observer: BaseObserver | None = None
        try:
            observer = Observer()
            self._lost.clear()
            wanted = sum(1 for folder in self._folders for _ in os.walk(folder))
            for folder in self._folders:
                self._inodes[folder] = folder.stat().st_ino
                handler = _Handler(folder, self._touch, self._lost.set)
                observer.schedule(handler, str(folder), recursive=True, event_filter=_ASKED)
            observer.start()
        except OSError as error:
            if observer is not None:
                observer.stop()  # a part of its threads runs already
            return str(error)
        self._observer = observer
        self._lack = _lack(wanted)
        return self._lack

    def close(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            with contextlib.suppress(RuntimeError):
                self._observer.join(5)
            self._observer = None

    def _is_healthy(self, observer: BaseObserver) -> bool:
        """A folder that was deleted and made again is silent for ever; an emitter may have died alone."""
        try:
            same = all(folder.stat().st_ino == self._inodes[folder] for folder in self._folders)
        except OSError:
            return False
        return (
            same
            and not self._lost.is_set()
            and observer.is_alive()
            and all(each.is_alive() for each in observer.emitters)
        )

    def _touch(self, folder: Path) -> None:
        with self._lock:
            self._touched.add(folder)
        self._ring()


def _lack(wanted: int) -> str:
    """Where the system's watches are used up, a part of the folders is watched, and nobody says so: count them."""
    watched = 0
    try:
        for each in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed by another thread
                if "inotify" in str(each.readlink()):
                    watched += Path("/proc/self/fdinfo", each.name).read_text().count("inotify wd:")
    except OSError:
        return ""
    return f"the system's watches are used up, {watched} of {wanted} folders have one" if watched < wanted else ""


class _Handler(FileSystemEventHandler):
    def __init__(self, root: Path, touch: Callable[[Path], None], lose: Callable[[], None]) -> None:
        self._root = str(root)
        self._touch = touch
        self._lose = lose

    def dispatch(self, event: FileSystemEvent) -> None:
        if event.event_type == "deleted" and str(event.src_path) == self._root:
            # The last word of this watch; a folder made anew may even have the old one's inode.
            self._lose()
        if event.event_type not in _RELEVANT:
            return
        path = Path(str(event.dest_path or event.src_path))
        if event.is_directory:
            self._touch(path)
        elif path.suffix == ".json" and not path.name.startswith(".") and "replies" not in path.parts[-3:]:
            self._touch(path.parent)
