"""Reads the beats of pulses for a watcher: from files that grow, and from sockets to which pulses connect."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from attempts.files import open_plain, parse_object
from coral.errors import CoralError
from heartbeats.beat import Beat, from_dict
from heartbeats.beat_writer import SOCKET_SUFFIX, cancel_file, is_socket
from heartbeats.interval import Watcher

LONGEST = 1 << 16  # bytes of a line
AT_ONCE = 1 << 22  # bytes that are read at once
MOST_CONNECTIONS = 1000


class BeatSource(Protocol):
    name: str

    def new(self) -> Iterator[Beat]:
        """Return the beats that arrived since the last call."""

    def cancel(self, session: str) -> None:
        """Ask the work of a session to stop. OSError if the request cannot be written."""

    def close(self) -> None: ...


def open_source(path: Path) -> BeatSource:
    """Open a file or a socket of beats. CoralError if the path can be neither."""
    if problem := _problem(path):
        raise CoralError(f"cannot watch {path}: {problem}", "name the file or the socket of a Pulse: docs/pulse.md")
    return BeatSocket(path) if is_socket(path) else BeatFile(path)


def _problem(path: Path) -> str:
    """Return why no beats can ever come from this path; empty if they can, perhaps later."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "" if path.parent.is_dir() else f"there is no folder {path.parent}"
    except OSError as error:  # a name that is too long, a link to itself
        return error.strerror or str(error)
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if stat.S_ISREG(mode):
        return f"it is a file, and {path.suffix} names a socket" if path.suffix == SOCKET_SUFFIX else ""
    return "" if stat.S_ISSOCK(mode) else "it is neither a file nor a socket"


class BeatFile:
    """Reads a file to which pulses append. The file may not exist yet, and is replaced by a new one when it has become
    long."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        self._watcher = Watcher(path)
        self._file: BinaryIO | None = None
        self._part = b""

    def new(self) -> Iterator[Beat]:
        self._watcher.touch()
        yield from self._read()
        with contextlib.suppress(OSError, ValueError):  # there is no file yet
            if self._file is None or self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino:
                yield from self._read()  # what was written before the file was replaced
                self.close()
                self._file = open_plain(self._path)
                yield from self._read()

    def _read(self) -> Iterator[Beat]:
        if self._file is None:
            return
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # it was emptied
            self._part = b""
        while data := self._file.read(AT_ONCE):
            *lines, self._part = (self._part + data).split(b"\n")
            self._part = self._part[:LONGEST]
            yield from _beats(lines)

    def cancel(self, session: str) -> None:
        with cancel_file(self._path).open("a", encoding="utf-8") as file:
            file.write(f"{session}\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._part = None, b""


class BeatSocket:
    """Listens on a socket to which pulses connect."""

    def __init__(self, path: Path) -> None:
        """CoralError if the socket cannot be made, or another process listens there."""
        self.name = path.name
        self._path = path
        self._parts: dict[socket.socket, bytes] = {}
        self._senders: dict[str, socket.socket] = {}
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._clear_the_way()
            self._server.bind(os.fspath(path))
            path.chmod(0o600)
            self._server.listen(128)
            self._server.setblocking(False)
        except OSError as error:
            self._server.close()
            hint = "watch it in one place only, under a path of fewer than 100 characters"
            raise CoralError(f"cannot listen on {path}: {error}", hint) from error

    def _clear_the_way(self) -> None:
        """Remove the file of a socket on which no process listens any more. OSError if one does."""
        if not self._path.is_socket():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(os.fspath(self._path))
            except ConnectionRefusedError:
                self._path.unlink()
            else:
                raise OSError("somebody listens on it already")

    def new(self) -> Iterator[Beat]:
        with contextlib.suppress(OSError):  # no further connection waits
            while len(self._parts) < MOST_CONNECTIONS:
                connection = self._server.accept()[0]
                connection.setblocking(False)
                self._parts[connection] = b""
        for connection in list(self._parts):
            yield from self._read(connection)

    def _read(self, connection: socket.socket) -> Iterator[Beat]:
        try:
            data = connection.recv(AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            del self._parts[connection]
            connection.close()
            return
        *lines, part = (self._parts[connection] + data).split(b"\n")
        self._parts[connection] = part[:LONGEST]
        for beat in _beats(lines):
            self._senders[beat.session] = connection
            yield beat

    def cancel(self, session: str) -> None:
        if session not in self._senders:
            raise OSError("it is not connected")
        self._senders[session].sendall(f"{session}\n".encode())

    def close(self) -> None:
        for connection in (self._server, *self._parts):
            connection.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def _beats(lines: list[bytes]) -> Iterator[Beat]:
    """Yield the beats in these lines; other lines are skipped."""
    for line in lines:
        with contextlib.suppress(ValueError):
            yield from_dict(parse_object(line))
