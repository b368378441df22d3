"""Files that appear whole or not at all, and are read as if an enemy had written them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import BinaryIO

# What the writer of a file did to it. Any other OSError (no more descriptors, a failing disk) is no statement about
# the file: it goes up, so that nothing is thrown away because this machine is in trouble.
_WRITERS_DOING = frozenset(
    {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ENXIO, errno.EPERM}
)

SETTLED = 2.0  # seconds: what happened in a folder so long after another change has given it other times
RELIST = 60.0  # seconds: after so long a folder is listed again, whatever its times say
MAX_REMEMBERED = 4096  # folders: whoever makes and removes others all day fills no memory with them

# What any change of a file changes: its inode, its size in bytes, the time of its last change in nanoseconds.
Witness = tuple[int, int, int]


def write_json(path: Path, data: Mapping[str, object], *, durable: bool, new: bool = False) -> None:
    """Write one JSON object. Durable means on disk, name and content, before this returns.

    `new`: FileExistsError where there is something of this name already, also if it came this very moment.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    write_bytes(path, text.encode("utf-8", "replace") + b"\n", durable=durable, new=new)


def write_bytes(path: Path, data: bytes, *, durable: bool, new: bool = False) -> None:
    # Nobody else's name, be the clock as coarse as it likes: no two threads of this machine have one number.
    temporary = path.parent / f".{path.name}.{os.getpid()}-{threading.get_native_id()}-{time.time_ns()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(temporary, flags, 0o644)
        except (FileNotFoundError, NotADirectoryError):
            _make_folder(path.parent)
            descriptor = os.open(temporary, flags, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if new:
            _put_new(temporary, path)
        else:
            temporary.replace(path)
    except BaseException:
        # Also Ctrl-C: the agent's program may interrupt `coral eval` at any moment.
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def _make_folder(folder: Path) -> None:
    """With those above it. What is no folder in the place of one is kept under a hidden name: agents can put something
    where others hand in and are answered."""
    there = next(ancestor for ancestor in (folder, *folder.parents) if os.path.lexists(ancestor))
    if not there.is_dir():
        there.rename(hidden(there))
    folder.mkdir(parents=True, exist_ok=True)


def _put_new(temporary: Path, path: Path) -> None:
    """Like a rename, which does not replace."""
    try:
        os.link(temporary, path)
        temporary.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        temporary.replace(path)


def hidden(path: Path) -> Path:
    """The name by which what somebody laid into a place of ours is kept beside it."""
    return path.with_name(f".{path.name}.foreign-{time.time_ns()}")


def make_way(path: Path) -> None:
    """Whatever lies where a regular file of ours should be is kept under a hidden name; a file stays."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            path.rename(hidden(path))


def witness(path: Path) -> Witness | None:
    """Of a file that is there, links not followed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns


def append_bytes(path: Path, data: bytes) -> None:
    """Add to a file in one write, all or nothing. Only one may write it.

    OSError also where something else than a file lies there: a pipe would hold us, a link lead elsewhere.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        written = os.write(descriptor, data)
        if written < len(data):  # the disk is full: half a line would spoil the next one
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)


def open_plain(path: Path) -> BinaryIO:
    """A regular file to read. ValueError if it is anything else; FileNotFoundError if it is gone."""
    try:
        # Without O_NONBLOCK, a pipe laid where a file should be would hold the reader for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _WRITERS_DOING:
            raise ValueError(f"it cannot be opened: {error.strerror}") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is no regular file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """A regular file's content. ValueError if it is anything else or longer than `limit`; FileNotFoundError if gone."""
    with open_plain(path) as file:
        data = file.read() if limit is None else file.read(limit + 1)
    if limit is not None and len(data) > limit:
        raise ValueError(f"it is longer than {limit} bytes")
    return data


def parse_object(data: bytes) -> dict[str, object]:
    """One JSON object in UTF-8. ValueError for anything else, also for NaN, infinity and nesting without end."""
    try:
        value: object = json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def entries(folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool], most: int | None = None) -> list[Path]:
    """What lies in a folder, without dot files. A folder that is gone or closed to us has nothing.

    `most` bounds the work where somebody may have filled the folder: it is how many names are looked at.
    """
    try:
        with os.scandir(folder) as found:
            looked_at = islice(found, most)
            return [Path(entry.path) for entry in looked_at if not entry.name.startswith(".") and is_wanted(entry)]
    except OSError as error:
        if error.errno in _WRITERS_DOING or error.errno == errno.ENOENT:
            return []
        raise


class Listings:
    """What lies in folders, remembered while they do not change: to ask that of one costs a fifth of listing it.

    Each folder is always asked about in the same way. A link in the place of a folder has nothing.
    """

    def __init__(self) -> None:
        # By folder: its state, when it was first seen in it and when it was listed, and what lay there.
        self._known: dict[Path, tuple[Witness, float, float, list[Path]]] = {}

    def entries(
        self, folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool], most: int | None = None
    ) -> list[Path]:
        """As `entries`. Where a file system keeps no times of its folders, what came is found after `RELIST`."""
        try:
            held = os.lstat(folder)
        except OSError:
            return entries(folder, is_wanted, most)
        if stat.S_ISLNK(held.st_mode):
            return []
        state, now = (held.st_ino, held.st_size, held.st_ctime_ns), time.monotonic()
        known = self._known.get(folder)
        since = known[1] if known is not None and known[0] == state else now
        # What comes within one tick of the file system's clock leaves the same time: only a listing made later says
        # what there is. Later by our clock alone: the other may be a server's, and slow.
        if known is None or known[0] != state or known[2] - since <= SETTLED or now - known[2] >= RELIST:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = self._known[folder] = (state, since, now, entries(folder, is_wanted, most))
        return list(known[3])


def is_plain_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def is_plain_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def sync_folder(folder: Path) -> None:
    """What was made, renamed or deleted in a folder is on the disk as well."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
