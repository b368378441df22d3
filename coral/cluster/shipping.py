"""Packs what a grade needs on a node: the grader's files with the modules of Coral that run them, and the candidate's
files.

The candidate's files are an archive already, or a checkout. Of these only what differs from a base is sent: the files
of an earlier candidate, which nodes keep by their hash.
"""

import hashlib
import os
import stat
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.cluster.archive import CANDIDATE, Entry, entries, pack, read
from coral.grading.parts import PACKAGE, PARTS

# The guard and what it imports, beside what runs a grader.
_GUARD = (
    "processes/__init__.py",
    "processes/result_channel.py",
    "cluster/__init__.py",
    "cluster/guard.py",
    "cluster/guard_protocol.py",
    "cluster/guard_server.py",
)
_NOT_PACKED = frozenset({"__pycache__", ".git"})  # of the grader's files; a checkout has what its commit has
MOST_BASES = 4
SMALL = 64 << 10  # bytes of a candidate's files that are sent whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A candidate's files as they are sent. `changes`: an archive of what differs from the archive `base`, or of all
    where that is empty; `removed`: what the base alone has; `outdated`: the hash of a base that is not used any
    more."""

    base_sha: str = ""
    base: bytes = b""
    changes: bytes
    removed: tuple[str, ...] = ()
    outdated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    sha: str
    data: bytes
    files: Mapping[str, "_File"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file, folder or link of a candidate. `content`: the hash of a file, the target of a link, empty for a folder;
    `size`: the bytes of a file, else 0. What equals the base's at the same path is not sent."""

    mode: int
    content: str
    size: int


class Shipping:
    def __init__(self) -> None:
        self._packed: dict[Path, tuple[object, str, bytes]] = {}
        self._bases: list[_Base] = []  # the one that was used last is the last
        self._lock = threading.Lock()

    def archive(self, private: Path) -> tuple[str, bytes]:
        """Return the hash of a grader's files and the archive of them. Packs them again after one has changed."""
        with self._lock:
            state = _state(private)
            if private not in self._packed or self._packed[private][0] != state:
                data = pack(read(_listed(_sources(private), _NOT_PACKED)))
                self._packed[private] = state, digest(data), data
            _, sha, data = self._packed[private]
            return sha, data

    def candidate(self, order: dict[str, Any]) -> bytes:
        return pack(_candidate(order))

    def parcel(self, order: dict[str, Any]) -> Parcel:
        """Pack a candidate's files against the base that they differ from least. If that is by more than half of their
        bytes, they become a base themselves, instead of the one that was not used for longest."""
        found = _candidate(order)
        size = sum(len(entry.content) for entry in found if stat.S_ISREG(entry.mode))
        if size <= SMALL:
            return Parcel(changes=pack(found))
        here = {entry.name: _file(entry) for entry in found}
        with self._lock:
            base = min(self._bases, key=lambda base: _differing(here, base.files), default=None)
            outdated = ""
            if base is None or _differing(here, base.files) > size / 2:
                data = pack(found)
                base = _Base(sha=digest(data), data=data, files=here)
                outdated = self._bases.pop(0).sha if len(self._bases) == MOST_BASES else ""
            self._bases = [*(other for other in self._bases if other is not base), base]
        return Parcel(
            base_sha=base.sha,
            base=base.data,
            changes=pack(entry for entry in found if base.files.get(entry.name) != here[entry.name]),
            removed=tuple(sorted(base.files.keys() - here.keys())),
            outdated=outdated,
        )


def _candidate(order: dict[str, Any]) -> list[Entry]:
    """Read the files of the candidate, under the name that their folder has on a node."""
    place = Path(order["places"][CANDIDATE])
    return entries(place.read_bytes()) if place.is_file() else list(read(_listed({CANDIDATE: place})))


def _differing(files: Mapping[str, _File], base: Mapping[str, _File]) -> int:
    """Return how many bytes the base lacks, and has too much: nodes fetch, keep and read all of a base."""
    return _size_of_other(files, base) + _size_of_other(base, files)


def _size_of_other(files: Mapping[str, _File], others: Mapping[str, _File]) -> int:
    """Return the bytes of the files that are not the same among the others."""
    return sum(file.size for name, file in files.items() if others.get(name) != file)


def _file(entry: Entry) -> _File:
    if stat.S_ISLNK(entry.mode):
        return _File(mode=entry.mode, content=os.fsdecode(bytes(entry.content)), size=0)
    content = digest(entry.content) if stat.S_ISREG(entry.mode) else ""
    return _File(mode=entry.mode, content=content, size=len(entry.content))


def _sources(private: Path) -> dict[str, Path]:
    sources = {f"kit/coral/{name}": PACKAGE / name for name in (*PARTS, *_GUARD)}
    listed = private.with_name(f"{private.name}.files.json")
    return {**sources, "private": private, **({"private.files.json": listed} if listed.exists() else {})}


def _state(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """Return the name, inode, size and times of all that is packed: they differ after any file was changed."""
    found = []
    for name, path in _listed({"": folder}, _NOT_PACKED):
        status = path.lstat()
        found.append((name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


def _listed(sources: Mapping[str, Path], left_out: Collection[str] = ()) -> Iterable[tuple[str, Path]]:
    """Yield all that is below the sources, with its name in the archive. `left_out`: names of what is not."""
    for name, source in sorted(sources.items()):
        yield name, source
        if source.is_dir() and not source.is_symlink():
            yield from _below(source, name, left_out)


def _below(folder: Path, name: str, left_out: Collection[str]) -> Iterable[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name not in left_out:
            yield f"{name}/{entry.name}", Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), f"{name}/{entry.name}", left_out)


def digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
