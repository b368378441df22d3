"""Where memory lies on disk: a ring of snapshots, each with a checksum, each put in place by rename.

A snapshot is whole or it is not one: whatever kills the process, the newest that is whole is read. Nothing is fsynced;
what a loss of power tears fails its checksum, and the one before it is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from hashlib import sha256
from pathlib import Path

from coral.native.codec import decode, encode
from coral.native.memory import Memory

RING = 5
NAME = re.compile(r"memory-(\d{8})\.json")
SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class Keeper:
    """Holds the present memory and saves it. `memory` is replaced, never changed, so a save at any moment is whole."""

    def __init__(self, folder: Path, memory: Memory, last: int) -> None:
        self.folder, self.memory = folder, memory
        self._last = self._at = last  # the newest number that was used, and that of the present memory

    @classmethod
    def create(cls, state: Path, session: str) -> Keeper:
        """A new session; one that began before without coming to anything is begun again."""
        folder = _folder(state, session)
        folder.mkdir(parents=True, exist_ok=True)
        keeper = cls(folder, Memory(session=session), max(_numbers(folder), default=0))
        keeper.save()
        return keeper

    @classmethod
    def resume(cls, state: Path, session: str) -> Keeper | None:
        """The session's newest whole memory; empty if all are spoiled; None if there is no such session."""
        folder = _folder(state, session)
        if not folder.is_dir():
            return None
        numbers = _numbers(folder)
        found = next((memory for number in reversed(numbers) if (memory := _read(folder, number, session))), None)
        return cls(folder, found or Memory(session=session), max(numbers, default=0))

    @property
    def spoiled(self) -> bool:
        """Whether the newest snapshot on disk could not be read."""
        return self._last > 0 and _read(self.folder, self._last, self.memory.session) is None

    def save(self) -> None:
        """Write a snapshot and forget the oldest. May be entered again by a signal while it runs."""
        self._last = self._at = number = self._last + 1
        body = json.dumps(encode(self.memory), ensure_ascii=False).encode("utf-8", "surrogatepass")
        temporary = self.folder / f".memory-{number:08d}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            whole = sha256(body).hexdigest().encode() + b"\n" + body
            while whole:
                whole = whole[os.write(handle, whole) :]
        finally:
            os.close(handle)
        temporary.replace(self.folder / f"memory-{number:08d}.json")
        for old in _numbers(self.folder)[:-RING]:
            (self.folder / f"memory-{old:08d}.json").unlink(missing_ok=True)

    def roll_back(self) -> bool:
        """Take the memory before the one that was last saved or taken; False where there is none."""
        for number in reversed(_numbers(self.folder)):
            memory = _read(self.folder, number, self.memory.session) if number < self._at else None
            if memory is not None:
                self.memory, self._at = memory, number
                return True
        return False


def _folder(state: Path, session: str) -> Path:
    if not SESSION.fullmatch(session):
        raise ValueError(f"{session[:60]!r} is no session id")
    return state / "sessions" / session


def _numbers(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(int(found[1]) for name in os.listdir(folder) if (found := NAME.fullmatch(name)))  # noqa: PTH208
    return []


def _read(folder: Path, number: int, session: str) -> Memory | None:
    try:
        mark, _, body = (folder / f"memory-{number:08d}.json").read_bytes().partition(b"\n")
        if sha256(body).hexdigest().encode() != mark:
            return None
        memory = decode(Memory, json.loads(body.decode("utf-8", "surrogatepass")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return memory if isinstance(memory, Memory) and memory.session == session else None
