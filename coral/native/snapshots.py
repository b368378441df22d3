"""Keeps the agent's memory on disk: a ring of snapshots, each with a checksum, each put in place by rename.

However the process ends, the newest snapshot that is whole is read. Nothing is fsynced: a snapshot torn by a loss of
power fails its checksum, and an earlier one is taken.
"""

import contextlib
import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from coral.codec import decode, encode

RING = 5
NAME = re.compile(r"memory-(\d{8})\.json")
SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class SessionMemory(Protocol):
    """A frozen dataclass that is made with nothing but `session`."""

    def __init__(self, *, session: str) -> None: ...

    @property
    def session(self) -> str: ...


Held = TypeVar("Held", bound=SessionMemory)


class Snapshots(Generic[Held]):
    """The present memory and its saved versions. `memory` is replaced, never changed: a save at any moment is whole."""

    def __init__(self, folder: Path, memory: Held, last: int) -> None:
        self.folder, self.memory = folder, memory
        self._last = last  # the highest number that was used
        self._current = last  # the number of the present memory

    @classmethod
    def create(cls, state: Path, session: str, kind: type[Held]) -> "Snapshots[Held]":
        """Begin a new session; one that exists already begins again with an empty memory."""
        folder = _folder(state, session)
        folder.mkdir(parents=True, exist_ok=True)
        snapshots = cls(folder, kind(session=session), max(_numbers(folder), default=0))
        snapshots.save()
        return snapshots

    @classmethod
    def resume(cls, state: Path, session: str, kind: type[Held]) -> "Snapshots[Held] | None":
        """Resume a session with its newest whole memory, or an empty one if all are damaged; None if there is no such
        session."""
        folder = _folder(state, session)
        if not folder.is_dir():
            return None
        numbers = _numbers(folder)
        empty = kind(session=session)
        newest = next((memory for number in reversed(numbers) if (memory := _read(folder, number, empty))), None)
        return cls(folder, newest or empty, max(numbers, default=0))

    @property
    def damaged(self) -> bool:
        """Whether the newest snapshot on disk could not be read."""
        return self._last > 0 and _read(self.folder, self._last, self.memory) is None

    def save(self) -> None:
        """Write a snapshot and delete the oldest. A signal handler may call it again while it runs."""
        self._last = self._current = number = self._last + 1
        body = json.dumps(encode(self.memory), ensure_ascii=False).encode("utf-8", "surrogatepass")
        temporary = self.folder / f".memory-{number:08d}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            unwritten = sha256(body).hexdigest().encode() + b"\n" + body
            while unwritten:
                unwritten = unwritten[os.write(handle, unwritten) :]
        finally:
            os.close(handle)
        temporary.replace(self.folder / f"memory-{number:08d}.json")
        for old in _numbers(self.folder)[:-RING]:
            (self.folder / f"memory-{old:08d}.json").unlink(missing_ok=True)

    def roll_back(self) -> bool:
        """Take the memory before the one that was last saved or taken; False where there is none."""
        for number in reversed(_numbers(self.folder)):
            memory = _read(self.folder, number, self.memory) if number < self._current else None
            if memory is not None:
                self.memory, self._current = memory, number
                return True
        return False


def newest_session(state: Path) -> str:
    """Return the session that was saved last; empty if there is none."""
    found = sorted((state / "sessions").glob("*/memory-*.json"), key=lambda path: path.stat().st_mtime_ns)
    return found[-1].parent.name if found else ""


def _folder(state: Path, session: str) -> Path:
    if not SESSION.fullmatch(session):
        raise ValueError(f"{session[:60]!r} is no session id")
    return state / "sessions" / session


def _numbers(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(int(found[1]) for name in os.listdir(folder) if (found := NAME.fullmatch(name)))  # noqa: PTH208
    return []


def _read(folder: Path, number: int, like: Held) -> Held | None:
    """Return the memory of a snapshot; None if it is not whole, or not of the class and session of `like`."""
    try:
        checksum, _, body = (folder / f"memory-{number:08d}.json").read_bytes().partition(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            return None
        memory = decode(type(like), json.loads(body.decode("utf-8", "surrogatepass")))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # also of a version with other fields
        return None
    return memory if isinstance(memory, type(like)) and memory.session == like.session else None
