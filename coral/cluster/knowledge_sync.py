"""Keeps the knowledge that agents share the same in the run's folder and in a mirror of it on a node. Both change.

There is one rule: a change is taken over where the other side still has what was changed. If both sides have changed a
file, the run's version keeps the name, and the node's is kept beside it under the name of its agent; a change counts
more than a removal. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

from coral.cluster.mirror import FILE, FOLDER, Entries, Entry, Message, check_inside, lies_in, scan
from workspace.plain_file import folder_of, read_below, write_below

MOST = 16 << 20  # bytes of a file; a larger one is not shared
UNREADABLE = "unreadable"  # in the place of a digest
LOCK = "knowledge.lock"
MOST_AT_ONCE = 32 << 20  # bytes of files in one list of changes


class Merge(Enum):
    SAME = "both sides have it"
    TAKE = "take the node's version"
    KEEP = "keep the run's version"
    BOTH = "keep the run's version, and the node's beside it"


def merge(base: str | None, here: str | None, there: str | None) -> Merge:
    """Decide about a file that a node has changed. `base`: the digest of what the node had before, `here`: of the
    run's version, `there`: of the node's; None where there is no such file."""
    if here == there:
        return Merge.SAME
    if here == base or here is None:
        return Merge.TAKE
    return Merge.KEEP if there is None else Merge.BOTH


def beside(name: str, agent: str, digest: str) -> str:
    """Return the name under which an agent's version of a file is kept, next to the other version."""
    path = Path(name)
    return str(path.with_name(f"{path.stem}~{agent}-{digest[:6]}{path.suffix}"))


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


class KnowledgeFolder:
    """One side. `known`: by name, the digest of what the other side has as far as this one knows."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.known = folder, dict[str, str]()
        self._seen: dict[str, tuple[Entry, str]] = {}  # by name: a file as it was read last, and its digest

    def changed(self) -> list[Message]:
        """Return what the other side does not know yet, with the digest of what it has. A list, so that no change comes
        between; after MOST_AT_ONCE bytes the rest is left to the next call. OSError where this machine cannot read
        all."""
        top, unread = self._folder.name, set[str]()
        held = scan(self._folder.parent, [top], unread)
        if held.get(top) != [FOLDER]:  # then nobody has removed what it held
            return []
        found = {
            name.partition("/")[2]: entry
            for name, entry in held.items()
            if entry[0] == FILE and not _is_unfinished(name)
        }
        gone = [name for name in self.known if name not in found and not lies_in(f"{top}/{name}", unread)]
        news = [{"knowledge": name, "data": None, "base": self.known.pop(name)} for name in gone]
        size = 0
        for message in self._news(found):
            news.append(message)
            size += len(message["data"])
            if size > MOST_AT_ONCE:
                break
        return news

    def _news(self, found: Entries) -> Iterator[Message]:
        for name, entry in found.items():
            if entry[2] > MOST:
                continue
            if (seen := self._seen.get(name)) is not None and seen[0] == entry and self.known.get(name) == seen[1]:
                continue
            if (data := read_below(self._folder, name, MOST)) is not None:
                now, base = str(digest(data)), self.known.get(name)
                self._seen[name], self.known[name] = (entry, now), now
                if now != base:
                    yield {"knowledge": name, "data": data, "base": base}

    def digest_of(self, name: str) -> str | None:
        """Return the digest of a file; UNREADABLE if there is something that cannot be read, None if there is
        nothing."""
        if (data := read_below(self._folder, name, MOST)) is not None:
            return digest(data)
        try:
            with folder_of(self._folder, name) as place:
                os.stat(Path(name).name, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError:
            pass
        return UNREADABLE

    def set(self, name: str, data: bytes | None) -> None:
        """Write the other side's version of a file here. OSError if there is a link or a folder at its path."""
        if data is None:
            with contextlib.suppress(FileNotFoundError), folder_of(self._folder, name) as place:
                os.unlink(Path(name).name, dir_fd=place)
            self.known.pop(name, None)
        else:
            write_below(self._folder, name, data)
            self.known[name] = str(digest(data))  # only now: what is known and not there counts as removed


class MirroredKnowledge(KnowledgeFolder):
    """A node's copy of the shared knowledge. A file on the node keeps the digests of what came from the run. A launch
    that continues one that was cut off compares with them: only what differs was changed by its agent."""

    def __init__(self, folder: Path, kept: Path, *, goes_on: bool) -> None:
        """`kept`: the path of that file; `goes_on`: whether changes of the launch before may be unknown to the run."""
        super().__init__(folder)
        self._kept, self._came, self._is_kept = kept, dict[str, str](), True
        if goes_on:
            self._came = _digests_in(kept)
            self.known = {name: sha for name, sha in self._came.items() if self.digest_of(name) is not None}
            return
        while self.changed():
            pass  # what is there is known: the run is told
        self._came, self._is_kept = dict(self.known), False
        self.keep()

    def set(self, name: str, data: bytes | None) -> None:
        super().set(name, data)
        self._came.pop(name, None)
        self._came |= {} if data is None else {name: self.known[name]}
        self._is_kept = False

    def keep(self) -> None:
        if not self._is_kept:
            with contextlib.suppress(OSError):  # the disk is full: it is tried again
                unfinished = self._kept.with_name(f".{self._kept.name}")
                unfinished.write_text(json.dumps(self._came), encoding="utf-8")
                unfinished.replace(self._kept)
                self._is_kept = True


def _digests_in(kept: Path) -> dict[str, str]:
    """Read what came from the run, by name. A file that is not there, or that somebody has changed, gives nothing: all
    that lies on the node then counts as changed there."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(kept.read_text("utf-8"))
        if isinstance(found, dict):
            return {name: digest for name, digest in found.items() if isinstance(digest, str)}
    return {}


def size_of(news: Iterable[Message]) -> int:
    """Return how many bytes the files in a list of changes have together."""
    return sum(len(message["data"] or b"") for message in news)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the run's knowledge, which each local process of a launch holds to take a change over: else two
    could take changes of one file to the same version. `folder`: one where no agent can hold the lock."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def take_here(folder: KnowledgeFolder, message: Message, agent: str) -> None:
    """Take a node's change over into the run's folder, by the rule. What the node then lacks is in `changed`.
    ValueError for a path that leads elsewhere: a node is not to be trusted with that."""
    name, data = message["knowledge"], message["data"]
    check_inside(name)
    there = digest(data)
    match merge(message["base"], folder.digest_of(name), there):
        case Merge.TAKE:
            folder.set(name, data)
        case Merge.BOTH:
            folder.set(beside(name, agent, str(there)), data)
            folder.known.pop(beside(name, agent, str(there)), None)  # the node does not have it under this name
        case _:
            pass
    if there is None:
        folder.known.pop(name, None)
    else:
        folder.known[name] = there  # that is what the node has now


def take_there(folder: KnowledgeFolder, message: Message) -> None:
    """Take the run's version over on a node, unless the file was changed here meanwhile: then the run hears of that,
    and decides."""
    if folder.digest_of(message["knowledge"]) in (message["base"], digest(message["data"])):
        folder.set(message["knowledge"], message["data"])


def _is_unfinished(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.startswith(".") and (last.endswith(".tmp") or last.startswith(".coral-"))
