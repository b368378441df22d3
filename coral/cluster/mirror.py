"""Copies folders between a run and the mirror of a part of it on a node, file by file, by names, sizes and times.

A side says what it has as entries, by their paths below the root. The messages that make the other side the same hold
the data of files, large ones in pieces. Whoever receives them keeps all aside until `apply`, and then puts each in its
place: no link that an agent has laid is followed. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from coral.grader.remove_tree import remove_tree
from workspace.layout import leads_outside
from workspace.plain_file import folder_of, give_like, link_below

PIECE = 1 << 20  # bytes of a file in one message
UNUSED_SECONDS = 14 * 86_400.0  # after which the mirror of another run is removed
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
def unless_of_machine(name: str = "", unread: set[str] | None = None) -> Iterator[None]:
    """Suppress an OSError that tells of a file: it is gone, or an agent has laid something else there. One that tells
    of this machine is raised, because a file that cannot be read must not count as removed. `unread` gets the name if
    the file is not gone."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        if is_of_machine(error):
            raise
        if unread is not None:
            unread.add(name)


def scan(root: Path, names: Iterable[str], unread: set[str] | None = None) -> Entries:
    """Return what these files and folders hold, the folders themselves included. Locks of git are left out, and what is
    neither file, link nor folder. `unread` gets the names of what is there and cannot be read. OSError where this
    machine cannot read all of it."""
    found, missed, ahead = Entries(), set[str]() if unread is None else unread, list[str]()
    for name in names:
        with unless_of_machine(name, missed):
            _add(found, name, (root / name).lstat(), root, ahead)
    while ahead:  # no function calls itself: an agent's folders may be deeper than Python's stack
        name = ahead.pop()
        with unless_of_machine(name, missed), os.scandir(root / name) as inside:
            for entry in inside:
                inner = f"{name}/{entry.name}"
                with unless_of_machine(inner, missed):
                    _add(found, inner, entry.stat(follow_symlinks=False), root, ahead)
    return found


def _add(found: Entries, name: str, status: os.stat_result, root: Path, ahead: list[str]) -> None:
    """Add what is at a path, and if that is a folder, its name to those that are still to be read."""
    if (entry := entry_of(root / name, status)) is None or (name.endswith(".lock") and "/.git/" in name):
        return
    found[name] = entry
    if entry[0] == FOLDER:
        ahead.append(name)


def is_gone(path: Path) -> bool:
    """Return whether there is nothing at a path. An error that tells of this machine does not count as that."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def kept(before: Mapping[str, Entry], unread: Collection[str]) -> Entries:
    """Return what there was before of what cannot be read now: it is not to count as removed."""
    return {name: entry for name, entry in before.items() if lies_in(name, unread)} if unread else {}


def lies_in(name: str, areas: Iterable[str]) -> bool:
    return any(name == area or name.startswith(f"{area}/") for area in areas)


def entry_of(path: Path, status: os.stat_result) -> Entry | None:
    """Return the entry of a file, link or folder; None for anything else."""
    if stat.S_ISREG(status.st_mode):
        return [FILE, stat.S_IMODE(status.st_mode) & 0o777, status.st_size, status.st_mtime_ns]
    if stat.S_ISLNK(status.st_mode):
        return [LINK, os.readlink(path)]  # noqa: PTH115 - a Path would drop a slash at the end, and git would see a change
    return [FOLDER] if stat.S_ISDIR(status.st_mode) else None


def messages(root: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Iterator[Message]:
    """Return what makes a side that has `before` the same as the one at `root`, which has `after`: objects of git
    first, because all else may refer to them. A file that is gone meanwhile is left out. After an OSError, which tells
    of this machine, the iterator goes on with the file that could not be read."""
    return _Messages(root, before, after)


class _Messages(Iterator[Message]):
    def __init__(self, root: Path, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> None:
        changed = [name for name, entry in after.items() if before.get(name) != entry]
        changed.sort(key=lambda name: ("/.git/objects" not in name, name))
        self._root, self._after = root, after
        self._ahead = deque([*changed, *sorted(before.keys() - after.keys(), reverse=True)])
        self._present: Iterator[Message] | None = None  # what is left of the first of them

    def __next__(self) -> Message:
        while self._ahead:
            self._present = self._present or self._of(self._ahead[0])
            try:
                if (message := next(self._present, None)) is not None:
                    return message
            except OSError:
                self._present = None
                raise
            self._present = None
            self._ahead.popleft()
        raise StopIteration

    def _of(self, name: str) -> Iterator[Message]:
        if (entry := self._after.get(name)) is None:
            return iter([{"remove": name}])
        if entry[0] == FOLDER:
            return iter([{"folder": name}])
        return iter([{"link": name, "to": entry[1]}]) if entry[0] == LINK else file_messages(self._root, name)


def file_messages(root: Path, name: str) -> Iterator[Message]:
    """Yield one file, with its mode and time; nothing if it is gone, or if a link lies on the way to it: a folder that
    was listed may have become one. `at`: how many bytes came before. OSError where this machine cannot read it."""
    with unless_of_machine():
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with folder_of(root, name) as place:
            handle = os.open(Path(name).name, flags, dir_fd=place)
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
    if not lies_in(name, areas):
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
    """Remove the folder at a path where a file or link is to be written."""
    with contextlib.suppress(FileNotFoundError), folder_of(root, name) as place:
        if stat.S_ISDIR(os.lstat(Path(name).name, dir_fd=place).st_mode):
            _remove_folder(Path(name).name, place)


def _remove_folder(last: str, place: int) -> None:
    """Remove a folder, however deep it is. OSError if something of it stays."""
    remove_tree(f"/proc/self/fd/{place}/{last}")
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(last, dir_fd=place)


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
            _remove_folder(last, place)
        else:
            os.unlink(last, dir_fd=place)


def hold_folder(folder: Path) -> int:
    """Make a folder and lock it, by the descriptor that is returned: neither other launches nor cleaners of temporary
    files then remove it, or what is in it."""
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_SH)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), folder.lstat()):
                    return handle
            os.close(handle)  # of a folder that was removed meanwhile


def remove_unused(mirrors: Path) -> None:
    """Remove the mirrors of runs that had no launch here for long, and have none now."""
    for folder in mirrors.iterdir():
        with contextlib.suppress(OSError):
            if folder.lstat().st_mtime >= time.time() - UNUSED_SECONDS:
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(handle)
