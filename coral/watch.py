"""Notifications of the folders that agents and the operator write in. They only wake the loop and say where to look.

The truth is what a poll finds: a lost notification costs time, never a submission. Where a folder cannot be watched
the run goes on at the pace of the poll.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

_RELEVANT = frozenset({"created", "moved", "closed"})


class Watch:
    """One recursive watch per folder; `ring` is called for every file that came."""

    def __init__(self, folders: tuple[Path, ...], ring: Callable[[], None]) -> None:
        self._folders = folders
        self._ring = ring
        self._observer: BaseObserver | None = None
        self._inodes: dict[Path, int] = {}
        self._touched = threading.Event()
        self._lost = threading.Event()

    def take(self) -> bool:
        """Whether something came since the last call."""
        touched = self._touched.is_set()
        self._touched.clear()
        return touched

    def keep_alive(self) -> str:
        """Start watching, or start again what has died. Returns why that is not possible, or an empty text."""
        if self._observer is not None and self._is_healthy(self._observer):
            return ""
        self.close()
        try:
            observer = Observer()
            self._lost.clear()
            for folder in self._folders:
                self._inodes[folder] = folder.stat().st_ino
                observer.schedule(_Handler(folder, self._touch, self._lost.set), str(folder), recursive=True)
            observer.start()
        except OSError as error:
            return str(error)
        self._observer = observer
        return ""

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

    def _touch(self) -> None:
        self._touched.set()
        self._ring()


class _Handler(FileSystemEventHandler):
    def __init__(self, root: Path, touch: Callable[[], None], lose: Callable[[], None]) -> None:
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
        if (
            path.suffix == ".json" and not path.name.startswith(".") and "replies" not in path.parts[-3:]
        ) or event.is_directory:
            self._touch()
