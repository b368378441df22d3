"""Packs files into an archive, and unpacks archives on a node. The same files give the same bytes, whenever they were
made.

An archive is the length of its table in eight bytes, the table as JSON, and the contents one after the other. The
table has the name, the mode and the size of each file, folder or link. The module tarfile takes three times as long,
which are milliseconds of each small grade. Ray sends this module to the nodes by value, for they have no Coral: it
imports the standard library only.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

CANDIDATE = "candidate"  # the folder of a candidate's files, on a node and in an archive of them
_LENGTH = 8
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """`mode`: as in `os.stat_result.st_mode`; `content`: the bytes of a file, the target of a link, nothing of a
    folder."""

    name: str
    mode: int
    content: memoryview


def read(files: Iterable[tuple[str, Path]]) -> Iterator[Entry]:
    """Read files, folders (without what is in them) and links, each with its name. Pipes, sockets and devices are left
    out."""
    for name, path in files:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            yield Entry(name, mode, memoryview(path.read_bytes()))
        elif stat.S_ISLNK(mode):
            yield Entry(name, mode, memoryview(os.readlink(os.fsencode(path))))  # noqa: PTH115 - a Path would change it
        elif stat.S_ISDIR(mode):
            yield Entry(name, mode, memoryview(b""))


def pack(found: Iterable[Entry]) -> bytes:
    """Make an archive of entries, in the order in which they come."""
    packed = list(found)
    head = json.dumps([(entry.name, entry.mode, len(entry.content)) for entry in packed]).encode()
    return b"".join((len(head).to_bytes(_LENGTH, "big"), head, *(entry.content for entry in packed)))


def entries(data: bytes) -> list[Entry]:
    """Return what an archive has. ValueError if a part of it is missing."""
    at = _LENGTH + int.from_bytes(data[:_LENGTH], "big")
    found, view = [], memoryview(data)
    for name, mode, size in json.loads(data[_LENGTH:at]):
        found.append(Entry(name, mode, view[at : at + size]))
        at += size
    if at != len(data):
        raise ValueError(f"an archive of {at} bytes has {len(data)}")
    return found


def unpack(found: Iterable[Entry], folder: Path) -> None:
    """Unpack the entries of one or several archives into a folder. Links in it may lead outside, as they may in the
    grader's folder and in a checkout on the supervisor's machine; names may not: ValueError."""
    ordered = sorted(found, key=lambda entry: entry.name)  # a folder before what is in it
    for entry in ordered:
        if entry.name.startswith("/") or ".." in entry.name.split("/"):
            raise ValueError(f"the archive has {entry.name}")
    paths = [(folder / entry.name, entry) for entry in ordered]
    folders = [(path, entry.mode) for path, entry in paths if stat.S_ISDIR(entry.mode)]
    for path, _ in folders:
        path.mkdir(0o700)
    for path, entry in paths:
        if stat.S_ISREG(entry.mode):
            with open(os.open(path, _NEW, 0o600), "wb") as file:
                file.write(entry.content)
                os.fchmod(file.fileno(), stat.S_IMODE(entry.mode))
    for path, entry in paths:  # after the files: nothing is written through a link
        if stat.S_ISLNK(entry.mode):
            path.symlink_to(os.fsdecode(bytes(entry.content)))
    for path, mode in reversed(folders):  # at last: one may be read-only
        path.chmod(stat.S_IMODE(mode))
