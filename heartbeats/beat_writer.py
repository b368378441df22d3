"""Where a `Pulse` writes its beats: a file, a unix socket that a watcher listens on, or a function.

A writer writes one beat at a time, raises OSError if that fails, and says whether somebody asked the work to stop. It
is used by one thread.
"""

import contextlib
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from heartbeats.interval import WatchedLook

BEATS = "CORAL_BEATS"  # the variable that names the place; in a run the supervisor sets it
FILE_LIMIT = 4 << 20  # bytes of a file of beats, which is then renamed to FILE.1
CANCEL_LIMIT = 1 << 16
SOCKET_SECONDS = 0.5  # for a reader that is slow to read
SOCKET_SUFFIX = ".sock"

Place = str | os.PathLike[str] | Callable[[dict[str, object]], object]


class BeatWriter:
    """The interface of the writers; this one writes nowhere."""

    def write(self, beat: dict[str, object]) -> None:
        """Write one beat. OSError where that is not possible."""

    def is_cancelled(self) -> bool:
        """Return whether somebody asked the session to stop."""
        return False

    def is_watched(self) -> bool:
        """Return whether somebody may see each beat at once."""
        return True

    def close(self) -> None:
        """Close what is open."""


def writer_to(place: Place | None, session: str) -> BeatWriter:
    """Return the writer of a session's beats to a place. None: to the place that $CORAL_BEATS names, or nowhere if it
    is not set."""
    if callable(place):
        return FunctionWriter(place)
    path = os.environ.get(BEATS, "") if place is None else os.fspath(place)
    if not path:
        return BeatWriter()
    return SocketWriter(path, session) if is_socket(Path(path)) else FileWriter(path, session)


def is_socket(path: Path) -> bool:
    """Return whether beats at this path go through a socket: the path is one, or its name ends so."""
    return path.suffix == SOCKET_SUFFIX or path.is_socket()


def cancel_file(path: Path) -> Path:
    """Return the file beside a file of beats that lists the sessions that are to stop, one a line."""
    return path.with_name(f"{path.name}.cancel")


def earlier_file(path: Path) -> Path:
    """Return the file to which a file of beats is renamed once it has become long."""
    return path.with_name(f"{path.name}.1")


class FileWriter(BeatWriter):
    def __init__(self, path: str, session: str) -> None:
        self._path = Path(path).absolute()  # the work may change its folder
        self._session = session.encode()
        self._look = WatchedLook(self._path)
        self._torn = False

    def write(self, beat: dict[str, object]) -> None:
        """Append one beat with a single write, so that lines of several processes do not mix. OSError also if the
        reader of a pipe is gone or slow."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(self._path, flags, 0o600)
        try:
            # What is left of a line, as on a full disk, must not spoil the next one.
            data = b"\n" + _line(beat) if self._torn else _line(beat)
            self._torn = os.write(handle, data) < len(data)
            found = os.fstat(handle)
        finally:
            os.close(handle)
        # Another process may have renamed it meanwhile.
        if stat.S_ISREG(found.st_mode) and found.st_size > FILE_LIMIT and self._path.stat().st_ino == found.st_ino:
            self._path.replace(earlier_file(self._path))

    def is_watched(self) -> bool:
        return self._look.is_watched()

    def is_cancelled(self) -> bool:
        with contextlib.suppress(OSError):
            handle = os.open(cancel_file(self._path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return self._session in os.read(handle, CANCEL_LIMIT).split()
            finally:
                os.close(handle)
        return False


_LEFT = (BrokenPipeError, ConnectionResetError)


class SocketWriter(BeatWriter):
    """Sends beats to a watcher that listens on a socket. While nobody listens, beats are lost, and each one tries to
    connect again."""

    def __init__(self, path: str, session: str) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - as sockets take it
        self._session = session.encode()
        self._connection: socket.socket | None = None
        self._asked = b""

    def write(self, beat: dict[str, object]) -> None:
        line = _line(beat)
        try:
            self._send(line)
        except _LEFT:  # the watcher is gone; another one may listen
            self.close()
            with contextlib.suppress(*_LEFT):
                self._send(line)
        except OSError:  # also if the watcher does not read: half a line may be sent
            self.close()
            raise

    def _send(self, line: bytes) -> None:
        if self._connection is None:
            self._connection = self._connect()
        if self._connection is not None:
            self._connection.sendall(line)

    def is_cancelled(self) -> bool:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                read = self._connection.recv(CANCEL_LIMIT, socket.MSG_DONTWAIT)
                self._asked = (self._asked + read)[-CANCEL_LIMIT:]
        return self._session in self._asked.split()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> socket.socket | None:
        """Connect to the socket; None if nobody listens."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(SOCKET_SECONDS)
            connection.connect(self._path)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except OSError:
            connection.close()
            raise
        return connection


class FunctionWriter(BeatWriter):
    """Calls a function of the work with each beat as a dict. Whatever it raises becomes an OSError."""

    def __init__(self, function: Callable[[dict[str, object]], object]) -> None:
        self._function = function

    def write(self, beat: dict[str, object]) -> None:
        try:
            self._function(beat)
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error


def _line(beat: dict[str, object]) -> bytes:
    return json.dumps(beat).encode() + b"\n"
