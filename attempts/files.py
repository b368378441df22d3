"""Writes files that appear whole or not at all; reads files that an agent may have replaced by anything; expands
paths."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import BinaryIO

# Errors that the writer of a file can cause. Any other OSError (no more descriptors, a failing disk) says nothing of
# the file: it is raised, so that nothing is thrown away because this machine is in trouble.
_CAUSED_BY_WRITER = frozenset(
    {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ENXIO, errno.EPERM}
)

SETTLED = 2.0  # seconds: of two changes this far apart, the later one surely changes the folder's times
RELIST = 60.0  # seconds: after so long a folder is listed again, whatever its times say
READ = 10  # names that are read of a folder, for each one that is wanted at most
MAX_REMEMBERED = 4096  # folders: an agent that makes and removes folders all day must not fill our memory

# What every change of a file changes: its inode, its size in bytes, the time of its last change in nanoseconds.
Witness = tuple[int, int, int]


def expanded(path: str | Path) -> Path:
    """Return the path with the home that `~` or `~user` at its beginning stands for; as it is if there is no such user:
    then `Path.expanduser` raises RuntimeError."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def write_json(path: Path, data: Mapping[str, object], *, durable: bool, new: bool = False, mode: int = 0o644) -> None:
    """Write one JSON object. `durable`: name and content are on the disk before this returns. `new`: raise
    FileExistsError if the name is taken, even if that happened only a moment ago."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    write_bytes(path, text.encode("utf-8", "replace") + b"\n", durable=durable, new=new, mode=mode)


def write_bytes(path: Path, data: bytes, *, durable: bool, new: bool = False, mode: int = 0o644) -> None:
    """Write a file; the parameters are those of `write_json`. If a link or a file lies in the place of its folder, that
    is renamed, and not followed."""
    # Unique however coarse the clock is: no two threads of this machine have the same number.
    temporary = f".{path.name}.{os.getpid()}-{threading.get_native_id()}-{time.time_ns()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with _folder_to_write(path.parent) as folder:
        try:
            with os.fdopen(os.open(temporary, flags, mode, dir_fd=folder), "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            if new:
                _put_new(temporary, path.name, folder)
            else:
                os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            # Also Ctrl-C: the agent's program may interrupt `coral eval` at any moment.
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        if durable:
            os.fsync(folder)


@contextlib.contextmanager
def _folder_to_write(folder: Path) -> Iterator[int]:
    """Yield a descriptor of the folder, which is made if it is missing."""
    try:
        descriptor = open_folder(folder)
    except (FileNotFoundError, NotADirectoryError):
        _make_folder(folder)
        descriptor = open_folder(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(folder: Path) -> int:
    """Open a folder and return its descriptor. NotADirectoryError for a file, and for a link to a folder."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents. A file or link in the place of one is renamed to a hidden name: agents can put one
    where other agents submit, or get their replies."""
    nearest = next(ancestor for ancestor in (folder, *folder.parents) if os.path.lexists(ancestor))
    if nearest.is_symlink() or not nearest.is_dir():
        nearest.rename(hidden(nearest))
    folder.mkdir(parents=True, exist_ok=True)


def _put_new(temporary: str, name: str, folder: int) -> None:
    """Rename a file, but raise FileExistsError instead of replacing another one."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.unlink(temporary, dir_fd=folder)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def hidden(path: Path) -> Path:
    """Return the hidden name to which something is renamed that lies in the place of a file of Coral's."""
    return path.with_name(f".{path.name}.foreign-{time.time_ns()}")


def make_way(path: Path) -> None:
    """Rename whatever lies in the place of a regular file to a hidden name; a regular file stays."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            path.rename(hidden(path))


def witness(path: Path) -> Witness | None:
    """Return the witness of the file at a path, without following a link; None if there is none."""
    try:
        return _witness_of(os.lstat(path))
    except OSError:
        return None


def _witness_of(found: os.stat_result) -> Witness:
    return found.st_ino, found.st_size, found.st_ctime_ns


def append_bytes(path: Path, data: bytes) -> None:
    """Append to a file in one write, all or nothing. The file must have no other writer.

    OSError also if it is no regular file, or its folder is a link: a pipe would block us, a link would lead elsewhere.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = open_folder(path.parent)
    try:
        descriptor = os.open(path.name, flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
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
    """Open a regular file to read. ValueError if it is anything else; FileNotFoundError if it is gone."""
    try:
        # Without O_NONBLOCK, a pipe in the place of a file would block the reader for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _CAUSED_BY_WRITER:
            raise ValueError(f"it cannot be opened: {error.strerror}") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is no regular file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Return the content of a regular file. ValueError if it is anything else or longer than `limit`; FileNotFoundError
    if it is gone."""
    with open_plain(path) as file:
        data = file.read() if limit is None else file.read(limit + 1)
    if limit is not None and len(data) > limit:
        raise ValueError(f"it is longer than {limit} bytes")
    return data


def read_end(path: Path, most: int) -> bytes:
    """Return the last `most` bytes of a regular file; empty if there is none that can be read."""
    try:
        with open_plain(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
            return file.read(most)
    except (OSError, ValueError):
        return b""


def parse_object(data: bytes) -> dict[str, object]:
    """Parse one JSON object in UTF-8. ValueError for anything else, also for NaN, infinity and too deep nesting."""
    try:
        value: object = json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def entries(folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool], most: int | None = None) -> list[Path]:
    """Return the wanted entries of a folder, without dot files; none if the folder is gone or may not be read.

    At most `most` of them: those whose names come first, because what is handed in is taken in the order of its ids.
    An agent may have filled the folder, so of more than READ times as many names some are not read.
    """
    try:
        with os.scandir(folder) as found:
            names = islice(found, None if most is None else READ * most)
            wanted = [entry for entry in names if not entry.name.startswith(".") and is_wanted(entry)]
            if most is not None and len(wanted) > most:
                wanted = sorted(wanted, key=lambda entry: entry.name)[:most]
            return [Path(entry.path) for entry in wanted]
    except OSError as error:
        if error.errno in _CAUSED_BY_WRITER or error.errno == errno.ENOENT:
            return []
        raise


class Listings:
    """Remembers the entries of folders while these do not change: checking that costs a fifth of a listing.

    A folder must always be listed with the same arguments. A link in the place of a folder has no entries.
    """

    def __init__(self) -> None:
        # By folder: its witness, when that was first seen, when the folder was listed, and its entries.
        self._known: dict[Path, tuple[Witness, float, float, list[Path]]] = {}

    def entries(
        self, folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool], most: int | None = None
    ) -> list[Path]:
        """Return the same as the function `entries`. On a file system that does not update the times of folders, a new
        file is found after RELIST."""
        try:
            held = os.lstat(folder)
        except OSError:
            return entries(folder, is_wanted, most)
        if stat.S_ISLNK(held.st_mode):
            return []
        state, now = _witness_of(held), time.monotonic()
        known = self._known.get(folder)
        since = known[1] if known is not None and known[0] == state else now
        # A file that comes within one tick of the file system's clock leaves the folder's time as it is: only a later
        # listing is complete. Later by our clock: the file system's may be a server's, and slow.
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
    """Make sure that files made, renamed or deleted in a folder are so on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
