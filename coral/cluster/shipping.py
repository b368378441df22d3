"""Packs what a grade needs on a node: the grader's files with the modules of Coral that run them, and the checkout.

Of a checkout only what differs from a base is sent: an earlier checkout, which nodes keep by its hash.
"""

import hashlib
import os
import stat
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.cluster.archive import pack
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
SMALL = 64 << 10  # bytes of a checkout that is sent whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A checkout as it is sent. `changes`: an archive of what differs from the archive `base`, or of the whole where
    that is empty; `removed`: what the base alone has; `outdated`: the hash of a base that is not used any more."""

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
    """A file, folder or link of a checkout. `content`: the hash of a file, the target of a link, empty for a folder;
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
                data = pack(_listed(_sources(private), _NOT_PACKED))
                self._packed[private] = state, digest(data), data
            _, sha, data = self._packed[private]
            return sha, data

    def checkout(self, order: dict[str, Any]) -> bytes:
        return pack(_listed(_candidate(order)))

    def parcel(self, order: dict[str, Any]) -> Parcel:
        """Pack a checkout against the base that it differs from least. If that is by more than half of its bytes, the
        checkout itself becomes a base, instead of the one that was not used for longest."""
        listed = list(_listed(_candidate(order)))
        states = [path.lstat() for _, path in listed]
        if sum(state.st_size for state in states if stat.S_ISREG(state.st_mode)) <= SMALL:
            return Parcel(changes=pack(listed))
        files = {name: (path, _file(path)) for name, path in listed}
        here, size = {name: file for name, (_, file) in files.items()}, sum(file.size for _, file in files.values())
        with self._lock:
            base = min(self._bases, key=lambda base: _differing(here, base.files), default=None)
            outdated = ""
            if base is None or _differing(here, base.files) > size / 2:
                data = self.checkout(order)
                base = _Base(sha=digest(data), data=data, files=here)
                outdated = self._bases.pop(0).sha if len(self._bases) == MOST_BASES else ""
            self._bases = [*(other for other in self._bases if other is not base), base]
        changed = [(name, path) for name, (path, file) in files.items() if base.files.get(name) != file]
        return Parcel(
            base_sha=base.sha,
            base=base.data,
            changes=pack(changed),
            removed=tuple(sorted(base.files.keys() - files.keys())),
            outdated=outdated,
        )


def _candidate(order: dict[str, Any]) -> dict[str, Path]:
    return {"candidate": Path(order["places"]["candidate"])}


def _differing(files: Mapping[str, _File], base: Mapping[str, _File]) -> int:
    """Return how many bytes the base lacks, and has too much: nodes fetch, keep and read all of a base."""
    return _size_of_other(files, base) + _size_of_other(base, files)


def _size_of_other(files: Mapping[str, _File], others: Mapping[str, _File]) -> int:
    """Return the bytes of the files that are not the same among the others."""
    return sum(file.size for name, file in files.items() if others.get(name) != file)


def _file(path: Path) -> _File:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return _File(mode=status.st_mode, content=str(path.readlink()), size=0)
    content = digest(path.read_bytes()) if stat.S_ISREG(status.st_mode) else ""
    return _File(mode=status.st_mode, content=content, size=status.st_size if content else 0)


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


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
