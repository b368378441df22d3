"""Copies folders between a run and the mirror of a part of it on a node, file by file, by names, sizes and times.

A side says what it has as entries, by their paths below the root. The messages that make the other side the same hold
the data of files, large ones in pieces. Whoever receives them keeps all aside until `apply`, and then puts each in its
place: no link that an agent has laid is followed. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workspace.layout import leads_outside
from workspace.plain_file import folder_of, give_like, link_below

PIECE = 1 << 20  # bytes of a file in one message
SETTLED = 2.0  # seconds after which a folder's time surely tells of one more change
FILE, LINK, FOLDER = "file", "link", "folder"
# Errors that tell of this machine, as a full disk, and not of what an agent has laid in the way of a file.
_OF_MACHINE = frozenset({
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETIMEDOUT),
})  # fmt: skip
_KINDS = ("piece", "put", "link", "folder", "remove")  # of messages

Entry = list[Any]  # [FILE, mode, size, time in nanoseconds], [LINK, target] or [FOLDER]
Entries = dict[str, Entry]
Message = dict[str, Any]


def is_of_machine(error: OSError) -> bool:
    return error.errno in _OF_MACHINE


@contextlib.contextmanager
def unless_of_machine() -> Iterator[None]:
    """Suppress an OSError that tells of a file: it is gone, or an agent has laid something else there. One that tells
    of this machine is raised, because a file that cannot be read must not count as removed."""
    try:
        yield
    except OSError as error:
        if is_of_machine(error):
            raise


def scan(root: Path, names: Iterable[str]) -> Entries:
    """Return what these files and folders hold, the folders themselves included. Locks of git are left out, and what is
    neither file, link nor folder. OSError where this machine cannot read all of it."""
    found: Entries = {}
    for name in names:
        with unless_of_machine():
            _add(found, name, (root / name).lstat(), root)
    return found


def _add(found: Entries, name: str, status: os.stat_result, root: Path) -> None:
    if (entry := _entry(root / name, status)) is None or (name.endswith(".lock") and "/.git/" in name):
        return
    found[name] = entry
    if entry[0] != FOLDER:
        return
    with unless_of_machine(), os.scandir(root / name) as inside:
        for one in inside:
            with unless_of_machine():
                _add(found, f"{name}/{one.name}", one.stat(follow_symlinks=False), root)


def _entry(path: Path, status: os.stat_result) -> Entry | None:
    if stat.S_ISREG(status.st_mode):
        return [FILE, stat.S_IMODE(status.st_mode) & 0o777, status.st_size, status.st_mtime_ns]
    if stat.S_ISLNK(status.st_mode):
        return [LINK, str(path.readlink())]
    return [FOLDER] if stat.S_ISDIR(status.st_mode) else None


class Growing:
    """Scans folders to which files are added, and in which none is changed: a folder is read again only when its time
    has changed. Of the folders `flat` only files of JSON are scanned, and no folder below them."""

    def __init__(self, root: Path, names: Iterable[str], flat: Iterable[str] = ()) -> None:
        self._root, self._names, self._flat = root, tuple(names), frozenset(flat)
        self._known: dict[str, tuple[int, float, Entries]] = {}  # by folder: its time, when it was read, what it holds

    def scan(self) -> Entries:
        found: Entries = {}
        ahead = [*self._names, *self._flat]
        while ahead:
            name = ahead.pop()
            with unless_of_machine():
                held = self._read(name)
                found[name] = [FOLDER]
                found.update(held)
                ahead += (inner for inner, entry in held.items() if entry[0] == FOLDER)
        return found

    def _read(self, name: str) -> Entries:
        changed, now = (self._root / name).lstat().st_mtime_ns, time.time()
        known = self._known.get(name)
        if known is not None and known[0] == changed and known[1] > changed / 1e9 + SETTLED:
            return known[2]
        held: Entries = {}
        with os.scandir(self._root / name) as inside:
            for one in inside:
                with unless_of_machine():
                    entry = _entry(Path(one.path), one.stat(follow_symlinks=False))
                    wanted = name not in self._flat or (one.name.endswith(".json") and entry and entry[0] == FILE)
                    if entry is not None and wanted and not one.name.startswith("."):
                        held[f"{name}/{one.name}"] = entry
        self._known[name] = changed, now, held
        return held


def messages(root: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Iterator[Message]:
    """Yield what makes a side that has `before` the same as the one at `root`, which has `after`: objects of git first,
    because all else may refer to them. A file that is gone meanwhile is left out."""
    changed = [name for name, entry in after.items() if before.get(name) != entry]
    for name in sorted(changed, key=lambda name: ("/.git/objects" not in name, name)):
        entry = after[name]
        if entry[0] == FOLDER:
            yield {"folder": name}
        elif entry[0] == LINK:
            yield {"link": name, "to": entry[1]}
        else:
            yield from file_messages(root, name)
    for name in sorted(before.keys() - after.keys(), reverse=True):
        yield {"remove": name}


def file_messages(root: Path, name: str) -> Iterator[Message]:
    """Yield one file, with its mode and time; nothing if it is gone. `at`: how many bytes came before. OSError where
    this machine cannot read it."""
    with unless_of_machine():
        handle = os.open(root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return
            data, at = file.read(PIECE), 0
            while len(data) == PIECE and (more := file.read(PIECE)):
                yield {"piece": name, "data": data, "at": at}
                data, at = more, at + PIECE
            mode = status.st_mode & 0o777
            yield {"put": name, "data": data, "at": at, "mode": mode, "time": status.st_mtime_ns}


class Receiver:
    """Takes messages about files. `root`: below which they lie; `aside`: a folder on the same disk, for files that are
    not in their place yet; `areas`: the paths below which they may lie; `folders`: those that stay folders."""

    def __init__(self, root: Path, aside: Path, areas: Iterable[str], folders: Iterable[str] = ()) -> None:
        self._root, self._aside, self._areas, self._folders = root, aside, tuple(areas), frozenset(folders)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700, parents=True)
        self._waiting = deque[tuple[Message, Path | None]]()
        self._pieces: dict[str, Path] = {}

    def take(self, message: Message) -> bool:
        """Keep a message for `apply`. Return whether it is about a file. ValueError for a path outside the areas. After
        an OSError the same message may be taken again."""
        kind = next((kind for kind in _KINDS if kind in message), "")
        if not kind:
            return False
        name = message[kind]
        check_below(name, self._areas)
        if kind != "folder" and name in self._folders:
            raise ValueError(f"{name[:100]!r} stays a folder")
        if kind in ("piece", "put"):
            part = self._pieces.setdefault(name, self._aside / secrets.token_hex(8))
            _add_piece(part, message["at"], message["data"])
        if kind == "put":
            self._waiting.append(({**message, "data": b""}, self._pieces.pop(name)))
        elif kind != "piece":
            self._waiting.append((message, None))
        return True

    def apply(self) -> list[str]:
        """Put everything in its place. Return the names of what could not be put there, as where a link lies on the
        way. After an OSError, which tells of this machine, the rest waits for the next call."""
        failed = []
        while self._waiting:
            message, part = self._waiting[0]
            try:
                self._apply(message, part)
            except OSError as error:
                if is_of_machine(error):
                    raise
                failed.append(next(str(message[kind]) for kind in _KINDS if kind in message))
                if part is not None:
                    part.unlink(missing_ok=True)
            self._waiting.popleft()
        return failed

    def _apply(self, message: Message, part: Path | None) -> None:
        if part is not None:
            self._put(message, part)
        elif "link" in message:
            _clear_place(self._root, message["link"])
            link_below(self._root, message["link"], message["to"])
        elif "folder" in message:
            with folder_of(self._root, message["folder"], make=True) as place:
                _make_folder(Path(message["folder"]).name, place)
        else:
            with contextlib.suppress(FileNotFoundError):
                remove(self._root, message["remove"])

    def _put(self, message: Message, part: Path) -> None:
        name = message["put"]
        _clear_place(self._root, name)
        with folder_of(self._root, name, make=True) as place:
            handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fchmod(handle, message["mode"] & 0o777)
                give_like(handle, place)
                os.utime(handle, ns=(message["time"], message["time"]))
            finally:
                os.close(handle)
            os.replace(part, Path(name).name, dst_dir_fd=place)


def check_below(name: str, areas: Iterable[str]) -> None:
    """Raise ValueError unless a path stays below the root and lies in one of the areas, or is one."""
    check_inside(name)
    if not any(name == area or name.startswith(f"{area}/") for area in areas):
        raise ValueError(f"{name[:100]!r} is no path of the mirror")


def check_inside(name: str) -> None:
    """Raise ValueError unless a path stays below the folder that it is relative to."""
    if not name or leads_outside(name):
        raise ValueError(f"{name[:100]!r} is no path of the mirror")


def _add_piece(part: Path, at: int, data: bytes) -> None:
    with part.open("ab") as file:
        if os.fstat(file.fileno()).st_size < at:
            raise OSError(errno.EIO, "a part of it is gone", str(part))
        file.truncate(at)  # what a write has left that did not end well
        file.write(data)


def _clear_place(root: Path, name: str) -> None:
    """Remove a folder that lies in the place of a file or link."""
    with contextlib.suppress(FileNotFoundError), folder_of(root, name) as place:
        if stat.S_ISDIR(os.lstat(Path(name).name, dir_fd=place).st_mode):
            shutil.rmtree(Path(name).name, dir_fd=place)


def _make_folder(last: str, place: int) -> None:
    try:
        os.mkdir(last, dir_fd=place)
    except FileExistsError:
        if stat.S_ISDIR(os.lstat(last, dir_fd=place).st_mode):
            return
        os.unlink(last, dir_fd=place)
        os.mkdir(last, dir_fd=place)
    handle = os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        give_like(handle, place)
    finally:
        os.close(handle)


def make_folder(root: Path, name: str) -> None:
    """Make a folder and those above it; a file or link in the place of one is removed."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (*reversed(Path(name).parents[:-1]), Path(name)):
        with folder_of(root, str(folder)) as place:
            _make_folder(folder.name, place)


def remove(root: Path, name: str) -> None:
    with folder_of(root, name) as place:
        last = Path(name).name
        if stat.S_ISDIR(os.lstat(last, dir_fd=place).st_mode):
            shutil.rmtree(last, dir_fd=place)
        else:
            os.unlink(last, dir_fd=place)
