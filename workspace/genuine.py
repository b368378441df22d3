"""Checks that the files of a checkout are those that the commit's id stands for.

Agents can write to the hub's objects, and git does not verify an object against its name: a commit could name one file,
and its checkout contain another. So the ids are computed here from the files; only if they differ, as after a
conversion of line ends, from the objects themselves.
"""

import hashlib
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from workspace.errors import GitError, Unacceptable
from workspace.git import MEGABYTE, Git
from workspace.loose_object import object_file, parse_header
from workspace.plain_file import read_plain

_AT_ONCE = 16 * MEGABYTE  # bytes of objects that one git process is asked for
_LONGEST_COMMIT = MEGABYTE
_TREE, _LINK, _SCRIPT, _FILE = b"40000", b"120000", b"100755", b"100644"

Entry = tuple[bytes, bytes, str]  # of a tree: mode, name and id


def check_genuine(hub: Path, commit: str, folder: Path) -> None:
    """Check the files of `commit` in `folder`. Unacceptable names an object that differs from its id; GitError if one
    is missing."""
    tree = tree_of_commit(hub, commit)
    if _id_of_folder(os.fsencode(folder), len(commit)) != tree:
        _check_objects(hub, tree)


def tree_of_commit(hub: Path, commit: str) -> str:
    """Return the id of a commit's tree. Unacceptable if the commit differs from its id."""
    body = _commit_body(hub, commit)
    header = parse_header(body)
    if _id("commit", body, len(commit)) != commit or header is None:
        raise _foreign("commit", commit)
    return header.tree


def entry_of(name: bytes, mode: int, content: bytes, length: int) -> Entry:
    """Return the entry of a file, or of a link, whose content is its target. `mode`: as in `os.stat_result.st_mode`;
    `length`: how long the ids of this repository are."""
    kind = _LINK if stat.S_ISLNK(mode) else _SCRIPT if mode & stat.S_IXUSR else _FILE
    return kind, name, _id("blob", content, length)


def entry_of_folder(name: bytes, entries: Iterable[Entry], length: int) -> Entry:
    """Return the entry of a folder that has these entries, whose id is that of its tree."""
    listed = sorted(entries, key=lambda entry: entry[1] + b"/" * (entry[0] == _TREE))
    tree = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(id)) for mode, name, id in listed)
    return _TREE, name, _id("tree", tree, length)


def _id(kind: str, content: bytes, length: int) -> str:
    """Return the id of an object. `length`: how long the ids of this repository are, which tells the hash."""
    hashed = hashlib.sha1(usedforsecurity=False) if length == 40 else hashlib.sha256()
    hashed.update(b"%s %d\0" % (kind.encode(), len(content)))
    hashed.update(content)
    return hashed.hexdigest()


def _commit_body(hub: Path, commit: str) -> bytes:
    """Return the content of a commit; read without a git process if the commit is a loose object."""
    packed = read_plain(object_file(hub / "objects", commit), _LONGEST_COMMIT, follow=True)
    try:
        content = zlib.decompressobj().decompress(packed or b"", _LONGEST_COMMIT)
    except zlib.error:
        content = b""
    head, _, body = content.partition(b"\0")
    return body if head.startswith(b"commit ") else Git(hub).run("cat-file", "commit", commit)


def _id_of_folder(folder: bytes, length: int) -> str:
    """Return the id of the tree with these files, as git would compute it."""
    with os.scandir(folder) as found:
        inside = list(found)  # closed before the folders in it are read: a candidate's may be hundreds deep
    entries: list[Entry] = []
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            entries.append((_TREE, entry.name, _id_of_folder(entry.path, length)))
            continue
        # A Path would drop a slash at the end.
        content = os.readlink(entry.path) if entry.is_symlink() else _content(entry.path)  # noqa: PTH115
        entries.append(entry_of(entry.name, entry.stat(follow_symlinks=False).st_mode, content, length))
    return entry_of_folder(b"", entries, length)[2]


def _content(path: bytes) -> bytes:
    """Read a regular file, the only kind that git makes. OSError if something else is there, such as a pipe, which
    would block."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{os.fsdecode(path)} is no regular file: somebody has replaced it")
        return file.read()


def _check_objects(hub: Path, tree: str) -> None:
    """Check the tree and everything below it, object by object."""
    trees, blobs = {tree}, dict[str, str]()
    while trees:
        below = set[str]()
        for id, kind, content in _read(hub, trees):
            if kind != "tree" or _id(kind, content, len(id)) != id:
                raise _foreign("folder", id)
            for mode, name, inner in _entries(content, len(id) // 2):
                if mode == _TREE:
                    below.add(inner)
                else:
                    blobs[inner] = name
        trees = below
    for id, kind, content in _read(hub, blobs):
        if kind != "blob" or _id(kind, content, len(id)) != id:
            raise _foreign(blobs[id], id)


def _entries(content: bytes, size: int) -> Iterator[tuple[bytes, str, str]]:
    """Yield mode, name and id of each entry of a tree. `size`: the length of an id in bytes."""
    place = 0
    while place < len(content):
        end = content.index(b"\0", place)
        mode, _, name = content[place:end].partition(b" ")
        place = end + 1 + size
        yield mode, name.decode("utf-8", "replace"), content[end + 1 : place].hex()


def _read(hub: Path, ids: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yield id, kind and content of each object. GitError if one is missing."""
    git = Git(hub)
    sizes = git.text("cat-file", "--batch-check=%(objectname) %(objectsize)", data=_lines(ids)).splitlines()
    asked, size = list[str](), 0
    for line in [*sizes, ""]:
        id, _, length = line.partition(" ")
        if asked and (not line or size + int(length) > _AT_ONCE):
            yield from _contents(git.run("cat-file", "--batch", data=_lines(asked), limit=size + len(asked) * 200))
            asked, size = [], 0
        if line:
            if not length.isdecimal():
                raise GitError(f"the hub lacks the object {id}")
            asked.append(id)
            size += int(length)


def _contents(output: bytes) -> Iterator[tuple[str, str, bytes]]:
    place = 0
    while place < len(output):
        end = output.index(b"\n", place)
        id, kind, length = output[place:end].decode().split(" ")
        place = end + 1 + int(length)
        yield id, kind, output[end + 1 : place]
        place += 1


def _lines(ids: Iterable[str]) -> bytes:
    return "".join(f"{id}\n" for id in ids).encode()


def _foreign(what: str, id: str) -> Unacceptable:
    return Unacceptable(f"the hub's copy of {what} is not what its id {id[:12]} says: somebody has overwritten it")
