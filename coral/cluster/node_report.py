"""What a node tells of itself to `coral doctor` and to `coral cluster --nodes`: its versions, its token, its disk, the
ports that it reaches, and what it keeps for grades and agents.

Ray sends this module to the nodes by value, for they may have no Coral: it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from coral.cluster.node import LEAST_BYTES, own_folder

PORT_SECONDS = 3.0  # for a port to take a connection
SIZE_SECONDS = 5.0  # for which folders are measured: of mirrors, that may be many files
MOST_UNREAD = 3  # paths that are named
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def report(ports: Mapping[str, str], archives: Collection[str] | None = ()) -> dict[str, Any]:
    """Return what this node has: the versions of `python` and `ray`; the free bytes of the `disk` that its `folder` is
    on; whether Ray `asks_token` here, and the file of it that others can read, `open_token`; which of `ports` it cannot
    reach, `closed`; and what it `kept`, see `_usage`. `ports`: host and port, by name; `archives`: the hashes of those
    that runs on the cluster use; None if that is not known."""
    base, until = own_folder(), time.monotonic() + SIZE_SECONDS
    here = base / socket.gethostname() / "archives"
    return {
        "python": platform.python_version(),
        "ray": str(getattr(sys.modules.get("ray"), "__version__", "")),
        "folder": str(base),
        "disk": shutil.disk_usage(base).free,
        "asks_token": os.environ.get("RAY_AUTH_MODE", "disabled").lower() != "disabled",
        "open_token": _open_token(),
        "closed": closed(ports),
        "kept": [
            _usage(here, lambda path: archives is None or path.name in archives, until),
            _usage(base / "agents", _has_launch, until),
        ],
    }


def is_of_disk(error: Exception) -> bool:
    """Return whether a grade has failed because of the disk of this node: by its error, or because the disk is full
    now."""
    if isinstance(error, OSError) and error.errno in _OF_DISK:
        return True
    with contextlib.suppress(OSError):
        return shutil.disk_usage(own_folder()).free < LEAST_BYTES
    return False


def closed(ports: Mapping[str, str]) -> list[str]:
    """Return which ports this machine cannot reach, with the reason. `ports`: host and port, by name."""
    found = []
    for name, address in ports.items():
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=PORT_SECONDS).close()
        except OSError as error:
            found.append(f"{name} at {address} ({error.strerror or error})")
    return found


def _open_token() -> str:
    """Return the path of the file that holds Ray's token if other users may read it; an empty text if not."""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: nobody says where the home is
        path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
        return str(path) if path.stat().st_mode & 0o077 else ""
    return ""


def _usage(folder: Path, is_used: Callable[[Path], bool], until: float) -> dict[str, Any]:
    """Return how full a `folder` is: its size in `bytes`; how many of them are `unused`, since `is_used` is false of
    their file or folder; the paths that cannot be read, `unread`; and whether the sizes are `partial`, because the time
    `until` of the monotonic clock has passed."""
    size, unused, unread = 0, 0, list[str]()
    for path in _inside(folder, unread):
        own = sum(_sizes(path, unread, until))
        size += own
        unused += 0 if is_used(path) else own
    return {
        "folder": str(folder),
        "bytes": size,
        "unused": unused,
        "unread": unread[:MOST_UNREAD],
        "partial": time.monotonic() > until,
    }


def _inside(folder: Path, unread: list[str]) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError:
        unread.append(str(folder))
        return []


def _sizes(top: Path, unread: list[str], until: float) -> list[int]:
    """Return the bytes of a file, or of each file in a folder and below."""
    found, ahead = list[int](), [top]
    while ahead and time.monotonic() < until:
        path = ahead.pop()
        try:
            state = path.lstat()
            if stat.S_ISDIR(state.st_mode):
                ahead += _inside(path, unread)
                continue
            found.append(state.st_size)
            if path == top and stat.S_ISREG(state.st_mode):  # an archive
                with path.open("rb") as file:
                    file.read(1)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        except OSError:
            unread.append(str(path))
    return found


def _has_launch(mirrors: Path) -> bool:
    """Return whether a launch of a run works on this node: it locks the folder of the run's mirrors meanwhile."""
    try:
        handle = os.open(mirrors, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it cannot be read, or is none
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
