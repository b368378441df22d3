"""Keeps the agent's memory on disk: a ring of snapshots, each with a checksum, each put in place by rename.

However the process ends, the newest snapshot that is whole and agrees with the run is read. Nothing is fsynced: a
snapshot torn by a loss of power fails its checksum, and an earlier one is taken.
"""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from attempts.store import Store
from coral.codec import decode, encode

RING = 5
NAME = re.compile(r"memory-(\d{8})\.json")
SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class SessionMemory(Protocol):
    """A frozen dataclass that is made with nothing but `session`."""

    def __init__(self, *, session: str) -> None: ...

    @property
    def session(self) -> str: ...

    @property
    def commits(self) -> Mapping[int, str]:
        """The commits of the attempts that it speaks of, by number."""
        ...

    def without_attempts(self) -> Self: ...


Held = TypeVar("Held", bound=SessionMemory)


class Snapshots(Generic[Held]):
    """The present memory and its saved versions. `memory` is replaced, never changed: a save at any moment is whole.

    `problem`: why the newest snapshot was not taken at a resume; empty if it was.
    """

    def __init__(self, folder: Path, memory: Held, last: int, problem: str = "") -> None:
        self.folder, self.memory, self.problem = folder, memory, problem
        self._last = last  # the highest number that was used

    @classmethod
    def create(cls, state: Path, session: str, kind: type[Held]) -> "Snapshots[Held]":
        """Begin a new session; one that exists already begins again with an empty memory."""
        folder = _folder(state, session)
        folder.mkdir(parents=True, exist_ok=True)
        snapshots = cls(folder, kind(session=session), max(_numbers(folder), default=0))
        snapshots.save()
        return snapshots

    @classmethod
    def resume(
        cls, state: Path, session: str, kind: type[Held], records: Path | None = None
    ) -> "Snapshots[Held] | None":
        """Resume a session with its newest memory that is whole and agrees with the folder of published `records`; None
        if there is no such session. If no memory agrees, the newest is taken and forgets its attempts; if none is
        whole, it is empty."""
        folder = _folder(state, session)
        if not folder.is_dir():
            return None
        numbers, newest, first = _numbers(folder), None, ""
        for number in reversed(numbers):
            memory = _read(folder, number, kind, session)
            problem = "it cannot be read" if memory is None else contradiction(memory.commits, records)
            if memory is not None and not problem:
                return cls(folder, memory, numbers[-1], first)
            newest, first = newest or memory, first or problem
        memory = newest.without_attempts() if newest is not None else kind(session=session)
        return cls(folder, memory, max(numbers, default=0), first)

    def save(self) -> None:
        """Write a snapshot and delete the oldest. A signal handler may call it again while it runs."""
        self._last = number = self._last + 1
        body = json.dumps(encode(self.memory), ensure_ascii=False).encode("utf-8", "surrogatepass")
        temporary = self.folder / f".memory-{number:08d}.tmp"
        temporary.touch(0o600)
        temporary.write_bytes(sha256(body).hexdigest().encode() + b"\n" + body)
        temporary.replace(self.folder / f"memory-{number:08d}.json")
        for old in _numbers(self.folder)[:-RING]:
            (self.folder / f"memory-{old:08d}.json").unlink(missing_ok=True)


def newest_session(state: Path) -> str:
    """Return the session that was saved last; empty if there is none."""
    found = sorted((state / "sessions").glob("*/memory-*.json"), key=lambda path: path.stat().st_mtime_ns)
    return found[-1].parent.name if found else ""


def contradiction(commits: Mapping[int, str], records: Path | None) -> str:
    """Return where memory disagrees with the records, as after a run was restored from an older copy; empty if
    nowhere."""
    if records is None:
        return ""
    store = Store(records)
    for number, commit in commits.items():
        found = store.find(number)
        if found is not None and found.commit != commit:
            return f"#{number} is another attempt now"
        if store.witness(number) is None:
            return f"#{number} is not there"
    return ""


def _folder(state: Path, session: str) -> Path:
    if not SESSION.fullmatch(session):
        raise ValueError(f"{session[:60]!r} is no session id")
    return state / "sessions" / session


def _numbers(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(int(found[1]) for name in os.listdir(folder) if (found := NAME.fullmatch(name)))  # noqa: PTH208
    return []


def _read(folder: Path, number: int, kind: type[Held], session: str) -> Held | None:
    """Return the memory of a snapshot; None if it is not whole, or not of this class and session."""
    try:
        checksum, _, body = (folder / f"memory-{number:08d}.json").read_bytes().partition(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            return None
        memory = decode(kind, json.loads(body.decode("utf-8", "surrogatepass")))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # also of a version with other fields
        return None
    return memory if isinstance(memory, kind) and memory.session == session else None
