"""Notifications about the folders in which agents and the operator write. They wake the loop, and say which folder to
read.

Only a poll is relied on: a lost notification costs time, never a submission. Where a folder cannot be watched, the run
continues at the pace of the poll.
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
# The system is asked for nothing else: each time that the supervisor reads a folder it opens and closes it, and to be
# notified of that for a thousand folders would cost more than to read them.
_WATCHED: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileClosedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]


class FolderWatch:
    """One recursive watch for each folder; `wake` is called for every new file."""

    def __init__(self, folders: tuple[Path, ...], wake: Callable[[], None]) -> None:
        self._folders = folders
        self._wake = wake
        self._observer: BaseObserver | None = None
        self._inodes: dict[Path, int] = {}
        self._touched: set[Path] = set()
        self._lock = threading.Lock()
        self._lost = threading.Event()
        self._error = ""

    def take(self) -> frozenset[Path]:
        """Return the folders that got a new file since the last call."""
        with self._lock:
            touched, self._touched = frozenset(self._touched), set()
        return touched

    def keep_alive(self) -> str:
        """Start to watch, or start again where the watch has died. Returns why not all folders are watched, or ""."""
        if self._observer is not None and self._is_healthy(self._observer):
            return self._error
        self.close()
        observer: BaseObserver | None = None
        try:
            observer = Observer()
            self._lost.clear()
            wanted = sum(1 for folder in self._folders for _ in os.walk(folder))
            for folder in self._folders:
                self._inodes[folder] = folder.stat().st_ino
                handler = _Handler(folder, self._touch, self._lost.set)
                observer.schedule(handler, str(folder), recursive=True, event_filter=_WATCHED)
            observer.start()
        except (OSError, RuntimeError) as error:  # RuntimeError: the system starts no further thread
            if observer is not None:
                observer.stop()  # some of its threads run already
            return str(error)
        self._observer = observer
        self._error = _missing_watches(wanted)
        return self._error

    def close(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            with contextlib.suppress(RuntimeError):
                self._observer.join(5)
            self._observer = None

    def _is_healthy(self, observer: BaseObserver) -> bool:
        """Return whether all folders are still watched: one may have been deleted and made again, and one of the
        observer's threads may have died."""
        try:
            same = all(folder.stat().st_ino == self._inodes[folder] for folder in self._folders)
        except OSError:
            return False
        return (
            same
            and not self._lost.is_set()
            and observer.is_alive()
            and all(emitter.is_alive() for emitter in observer.emitters)
        )

    def _touch(self, folder: Path) -> None:
        with self._lock:
            self._touched.add(folder)
        self._wake()


def _missing_watches(wanted: int) -> str:
    """Return why only some of the `wanted` folders are watched, or "": when the system's watches are used up, the
    observer reports no error. The watches are counted in /proc; "" where there is none."""
    watched = 0
    try:
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed by another thread
                if "inotify" in str(descriptor.readlink()):
                    watched += Path("/proc/self/fdinfo", descriptor.name).read_text().count("inotify wd:")
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
            # This watch reports nothing more; a folder that is created again may even have the old one's inode.
            self._lose()
        if event.event_type not in _RELEVANT:
            return
        path = Path(str(event.dest_path or event.src_path))
        if event.is_directory:
            self._touch(path)
        elif path.suffix == ".json" and not path.name.startswith(".") and "replies" not in path.parts[-3:]:
            self._touch(path.parent)
