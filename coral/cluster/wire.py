"""The messages between the bridge and the local process of a grade or launch: lines of JSON over a socket in the run's
folder.

The path of a run may be too long for a socket's, so the socket is reached by a descriptor of its folder. Standard
library only.
"""

from __future__ import annotations

import _socket
import binascii
import os

from coral.cluster import light_json

TYPE_CHECKING = False  # as in typing: each import here is paid by every grade on a cluster
if TYPE_CHECKING:
    import socket
    from pathlib import Path
    from typing import Any, TypeVar

    Made = TypeVar("Made", bound=_socket.socket)

SOCKET, LOCK, TROUBLE, CAPACITY, EXCLUDED, LOG = "socket", "lock", "trouble", "capacity", "excluded", "bridge.log"
SILENT_SECONDS = 30.0  # beyond its timeout, until a grade that has begun counts as lost if no end is reported
AWAY_SECONDS = 30.0  # beyond that, for which a grade waits for the next bridge, which may know of its end
GRADE_LOG = "cluster.log"  # in the folder of a grade
CARD = "accelerator_type:"  # and a type: the resource by which Ray knows graphics cards of that type
_BYTES = "\0base64"  # the key of an object that stands for bytes: one that no user takes for an argument of a grader


def connect(folder: Path, seconds: float) -> socket.socket:
    """Connect to the bridge. Raises OSError if no bridge answers."""
    import socket

    return _connected(socket.socket(socket.AF_UNIX), folder, seconds)


def connect_lightly(folder: str, seconds: float) -> _socket.socket:
    """Connect to the bridge, without the module socket, which takes long to import. Raises OSError likewise."""
    return _connected(_socket.socket(_socket.AF_UNIX), folder, seconds)


def _connected(made: Made, folder: str | Path, seconds: float) -> Made:
    made.settimeout(seconds)
    try:
        _at(folder, made.connect)
    except OSError:
        made.close()
        raise
    made.settimeout(None)
    return made


def ask(folder: Path, message: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send the bridge a message and return its answer. Raises OSError if no bridge answers within `seconds`."""
    with connect(folder, seconds) as connection:
        connection.settimeout(seconds)
        connection.sendall(encoded(message))
        with connection.makefile("rb") as lines:
            line = lines.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the bridge has ended")
    return decoded(line)


def listen(folder: Path) -> socket.socket:
    import socket

    (folder / SOCKET).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX)
    _at(folder, made.bind)
    (folder / SOCKET).chmod(0o600)
    made.listen(1024)
    return made


def _at(folder: str | Path, call: Any) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        call(f"/proc/self/fd/{handle}/{SOCKET}")
    finally:
        os.close(handle)


def encoded(message: dict[str, Any]) -> bytes:
    return light_json.dumps(message, _plain).encode() + b"\n"


def decoded(line: bytes) -> dict[str, Any]:
    """Parse one line. Raises ValueError if it is no message."""
    message = light_json.loads(line.decode(), _whole)
    if not isinstance(message, dict):
        raise ValueError("a message is an object")
    return message


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {_BYTES: binascii.b2a_base64(value, newline=False).decode()}
    raise TypeError(f"{type(value).__name__} is no part of a message")


def _whole(value: dict[str, Any]) -> Any:
    return binascii.a2b_base64(value[_BYTES]) if value.keys() == {_BYTES} else value


def trouble(folder: str | Path) -> str:
    """Return why the bridge cannot use the cluster now; empty if it has reported nothing."""
    try:
        with open(f"{folder}/{TROUBLE}", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def capacity(folder: Path) -> int | None:
    """Return for how many grades the cluster has room when nothing else runs there; None if no bridge has measured
    it."""
    try:
        return int((folder / CAPACITY).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def excluded(folder: Path) -> dict[str, str]:
    """Return the addresses of the excluded nodes, each with the reason; empty if no bridge has reported any."""
    try:
        found: dict[str, str] = light_json.loads((folder / EXCLUDED).read_text("utf-8"))
        return found
    except (OSError, ValueError):
        return {}
