"""Reads the header of a commit from its loose object (git's word for an object in a file of its own), without starting
git.

A git process takes 3 ms, and a submission needs three headers. Agents write some of these files, so they may be
anything: reading one never blocks, never fills the memory and never raises.
"""

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from workspace.plain_file import read_plain

_MUCH = 65536  # bytes; the tree and the parents come first
_TREE = re.compile(rb"tree ([0-9a-f]{40,64})")
_PARENT = re.compile(rb"parent ([0-9a-f]{40,64})")


@dataclass(frozen=True, slots=True)
class Header:
    """The tree and the parents of a commit, as it names them."""

    tree: str
    parents: tuple[str, ...]


def object_file(objects: Path, name: str) -> Path:
    """Return the file of the object with this id, which exists unless the object is in a pack."""
    return objects / name[:2] / name[2:]


def read_header(path: Path) -> Header | None:
    """Return the header of the commit in this object file; None if it is absent, unreadable, or not a commit."""
    packed = read_plain(path, _MUCH, follow=True)
    try:
        content = zlib.decompressobj().decompress(packed or b"", _MUCH)
    except zlib.error:
        return None
    kind, _, body = content.partition(b"\0")
    return parse_header(body) if kind.startswith(b"commit ") else None


def parse_header(body: bytes) -> Header | None:
    lines = body.partition(b"\n\n")[0].split(b"\n")
    tree = _TREE.fullmatch(lines[0])
    if tree is None:
        return None
    return Header(tree[1].decode(), tuple(found[1].decode() for line in lines if (found := _PARENT.fullmatch(line))))
