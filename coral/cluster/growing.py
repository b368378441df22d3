"""Finds what the supervisor has added to the run's folder that agents on nodes may read, and what of it is new.
Standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.cluster.mirror import (
    FILE,
    FOLDER,
    Entries,
    Message,
    entry_of,
    is_of_machine,
    kept,
    messages,
    scan,
    unless_of_machine,
)

SETTLED = 2.0  # seconds after which a folder's time surely tells of one more change


@dataclass(frozen=True, slots=True)
class _Held:
    """What was read of a folder. `changed`: its modification time, in nanoseconds; `folders`: the entries that are
    folders."""

    changed: int
    read_at: float
    entries: Entries
    folders: tuple[str, ...]

    def is_still_so(self, changed: int) -> bool:
        return self.changed == changed and self.read_at > changed / 1e9 + SETTLED


class Growing:
    """Scans folders whose files are added and removed, but never changed: it reads a folder again only when the
    modification time of the folder has changed. In the folders `flat` it scans only JSON files, and no folders."""

    def __init__(self, root: Path, names: Iterable[str], flat: Iterable[str] = ()) -> None:
        self._root, self._flat = root, frozenset(flat)
        self._tops = (*names, *self._flat)
        self._known: dict[str, _Held] = {}

    def scan(self) -> Entries:
        """Return all that there is. OSError where this machine cannot read all of it."""
        self.changed()
        found: Entries = {}
        for name, folder in self._known.items():
            found |= {name: [FOLDER], **folder.entries}
        return found

    def changed(self) -> tuple[Entries, Entries]:
        """Return what has changed since the last call: what there was, and what there is instead. OSError as `scan`,
        and the next call returns it."""
        before, after, self._known = self._compared()
        return before, after

    def messages(self) -> list[Message]:
        """Return the messages about what has changed, as `changed`."""
        before, after, known = self._compared()
        made = list(messages(self._root, before, after))
        self._known = known
        return made

    def _compared(self) -> tuple[Entries, Entries, dict[str, _Held]]:
        before, after, known = Entries(), Entries(), dict[str, _Held]()
        ahead = list(self._tops)
        while ahead:
            name = ahead.pop()
            was = self._known.get(name)
            if (held := self._read(name, was)) is None:
                continue
            known[name] = held
            ahead += held.folders
            if held is not was:
                after |= {name: [FOLDER], **held.entries}
                before |= {} if was is None else {name: [FOLDER], **was.entries}
        for name in self._known.keys() - known.keys():
            before |= {name: [FOLDER], **self._known[name].entries}
        return before, after, known

    def _read(self, name: str, was: _Held | None) -> _Held | None:
        """Read a folder. Return `was`, what was read last, if the folder has not changed or cannot be read; None if it
        does not exist."""
        path, now = f"{self._root}/{name}", time.time()
        try:
            changed = os.lstat(path).st_mtime_ns
            if was is not None and was.is_still_so(changed):
                return was
            held = self._inside(name, path, {} if was is None else was.entries)
        except FileNotFoundError:
            return None
        except OSError as error:
            if is_of_machine(error):
                raise
            return was
        return _Held(changed, now, held, tuple(inner for inner, entry in held.items() if entry[0] == FOLDER))

    def _inside(self, name: str, path: str, before: Entries) -> Entries:
        held, unread = Entries(), set[str]()
        with os.scandir(path) as inside:
            for item in inside:
                if item.name.startswith(".") or (name in self._flat and not item.name.endswith(".json")):
                    continue
                inner = f"{name}/{item.name}"
                with unless_of_machine(inner, unread):
                    entry = entry_of(Path(item.path), item.stat(follow_symlinks=False))
                    if entry is not None and (name not in self._flat or entry[0] == FILE):
                        held[inner] = entry
        return {**kept(before, unread), **held}


class Given:
    """What the supervisor writes and the node may read."""

    def __init__(self, root: Path, areas: dict[str, Any]) -> None:
        self._root, self._areas = root, areas
        self._given = Entries()
        self._growing, self._answers = Growing(root, areas["growing"], areas["flat"]), Growing(root, areas["answers"])

    def all(self, has: Entries) -> Iterator[Message]:
        """Return what a node lacks that has this. `changes` are those after it."""
        self._given = self._read()
        return messages(self._root, has, {**self._given, **self._growing.scan()})

    def changes(self) -> Iterator[Message]:
        given = self._read()
        before, after = self._growing.changed()
        before, after = {**before, **self._given}, {**after, **given}
        self._given = given
        return messages(self._root, before, after)

    def answers(self) -> list[Message]:
        """Return the answers since the last call; all of them at the first one. After an OSError the next call returns
        them."""
        return self._answers.messages()

    def _read(self) -> Entries:
        unread = set[str]()
        found = scan(self._root, self._areas["given"], unread)
        return {name: entry for name, entry in {**kept(self._given, unread), **found}.items() if not _is_hidden(name)}


def _is_hidden(name: str) -> bool:
    """Return whether a file is one that is not whole yet."""
    return name.rpartition("/")[2].startswith(".")
