"""Packs what a grade needs on a node: the grader's files with the modules of Coral that run them, and the checkout.

The same files give the same bytes, whenever and in whatever order they were made.
"""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from coral.grading.parts import PACKAGE, PARTS

# The guard and what it imports, beside what runs a grader.
_GUARD = ("processes/__init__.py", "processes/result_channel.py", "cluster/__init__.py", "cluster/guard.py")
_NOT_PACKED = frozenset({"__pycache__", ".git"})
_MADE = 315_619_200  # the time of every file, in 1980: a zip cannot hold an older one


class Shipping:
    def __init__(self) -> None:
        self._packed: dict[Path, tuple[object, str, bytes]] = {}
        self._lock = threading.Lock()

    def archive(self, private: Path) -> tuple[str, bytes]:
        """Return the hash of a grader's files and the archive of them. Packs them again after one has changed."""
        with self._lock:
            state = _state(private)
            if private not in self._packed or self._packed[private][0] != state:
                data = pack(_sources(private))
                self._packed[private] = state, digest(data), data
            _, sha, data = self._packed[private]
            return sha, data

    def checkout(self, order: dict[str, Any]) -> bytes:
        return pack({"candidate": Path(order["places"]["candidate"])})


def _sources(private: Path) -> dict[str, Path]:
    sources = {f"kit/coral/{name}": PACKAGE / name for name in (*PARTS, *_GUARD)}
    listed = private.with_name(f"{private.name}.files.json")
    return {**sources, "private": private, **({"private.files.json": listed} if listed.exists() else {})}


def _state(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """Return the name, inode, size and times of every file: they differ after any file was changed."""
    found = []
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        found.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


def pack(sources: Mapping[str, Path]) -> bytes:
    """Pack files and folders. `sources`: by their names in the archive. Pipes, sockets and devices are left out."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, source in sorted(sources.items()):
            for path in (source, *sorted(_below(source))):
                _add(archive, path, name if path == source else f"{name}/{path.relative_to(source)}")
    return file.getvalue()


def _below(folder: Path) -> Iterable[Path]:
    if folder.is_dir() and not folder.is_symlink():
        for path in folder.iterdir():
            if path.name not in _NOT_PACKED:
                yield path
                yield from _below(path)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    info = archive.gettarinfo(str(path), name)
    if info is None or not (info.isfile() or info.isdir() or info.issym() or info.islnk()):
        return
    info.uid = info.gid = 0
    info.mtime = _MADE
    info.uname = info.gname = ""
    if info.islnk():  # a hard link becomes a file of its own
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    if info.isfile():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
