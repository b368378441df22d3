"""What a commit may contain, so that its checkout for a grade stays inside the folder made for it.

A tree is refused with a reason that its author can act on: a link that leads out of it, a repository inside it, too
many or too large files, attributes with which git ends. Links are resolved as the file system does, one by one: `a/..`
is not `.` if `a` is a link.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workspace.errors import Unacceptable

MAX_FILES = 20_000
MAX_BYTES = 200_000_000
MAX_LINKS = 1_000
MAX_ATTRIBUTES = 1_000_000  # bytes of all files with attributes
_MAX_FOLLOWED = 40
_MAX_PATH = 1024
_MAX_NAME = 255
_LINK, _REPOSITORY = "120000", "160000"
_ATTRIBUTES, _ENCODING = ".gitattributes", b"working-tree-encoding"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree. `size`: None if its content is not there."""

    mode: str
    id: str
    size: int | None
    path: str


def parse(listing: bytes) -> list[TreeEntry]:
    """Return the files that `ls-tree -r -t -l -z --full-tree` lists. A path that is not UTF-8 keeps its bytes as
    surrogates."""
    entries = []
    for line in listing.split(b"\0"):
        about, tab, path = line.partition(b"\t")
        if tab:
            mode, kind, name, size = about.decode("ascii").split()
            if kind == "tree":
                continue
            entries.append(TreeEntry(mode, name, int(size) if size.isdecimal() else None, os.fsdecode(path)))
    return entries


def check(entries: list[TreeEntry], read: Callable[[list[str]], Mapping[str, bytes]]) -> None:
    """Raise Unacceptable if the tree must be refused. `read` returns the contents of blobs, here the targets of
    links and the files with attributes."""
    if len(entries) > MAX_FILES:
        raise too_many()
    total = sum(entry.size or 0 for entry in entries)
    if total > MAX_BYTES:
        largest = sorted(entries, key=lambda entry: entry.size or 0, reverse=True)[:3]
        named = ", ".join(f"{_show(entry.path)} ({(entry.size or 0) / 1e6:.0f} MB)" for entry in largest)
        raise Unacceptable(
            f"it is larger than {MAX_BYTES // 1_000_000} MB: {named}", "ignore what is large and generated"
        )
    for entry in entries:
        if entry.mode == _REPOSITORY:
            raise Unacceptable(
                f"{_show(entry.path)} is a repository of its own",
                f"git rm --cached {_show(entry.path)}, remove its .git, and submit again",
            )
        if entry.size is None:
            raise Unacceptable(f"the content of {_show(entry.path)} is missing")
        path = os.fsencode(entry.path)
        if len(path) > _MAX_PATH or any(len(name) > _MAX_NAME for name in path.split(b"/")):
            raise Unacceptable(f"the name {_show(entry.path)} is too long")
    _check_links([entry for entry in entries if entry.mode == _LINK], read)
    # Git reads a link with that name, too, as if its target were the file's text.
    _check_attributes([entry for entry in entries if entry.path.rpartition("/")[2] == _ATTRIBUTES], read)


def too_many() -> Unacceptable:
    return Unacceptable(f"it has more than {MAX_FILES:,} files", "ignore what is generated, by a .gitignore")


def _check_links(links: list[TreeEntry], read: Callable[[list[str]], Mapping[str, bytes]]) -> None:
    if len(links) > MAX_LINKS:
        raise Unacceptable(f"it has more than {MAX_LINKS:,} links")
    for link in links:
        if (link.size or 0) > _MAX_PATH:
            raise Unacceptable(f"the target of the link {_show(link.path)} is too long")
    contents = read([link.id for link in links]) if links else {}
    targets = {link.path: os.fsdecode(contents[link.id]) for link in links}
    for path, target in targets.items():
        if not target or "\0" in target:
            raise Unacceptable(f"the link {_show(path)} has no target", f"git rm --cached {_show(path)}")
        if leaves(path, targets):
            reason = f"the link {_show(path)} leads out of the repository, to {_show(target)}"
            raise Unacceptable(reason, f"git rm --cached {_show(path)}, or replace the link by a file")


def _check_attributes(files: list[TreeEntry], read: Callable[[list[str]], Mapping[str, bytes]]) -> None:
    if sum(file.size or 0 for file in files) > MAX_ATTRIBUTES:
        raise Unacceptable(f"its {_ATTRIBUTES} are larger than {MAX_ATTRIBUTES // 1_000_000} MB")
    contents = read([file.id for file in files]) if files else {}
    for file in files:
        if any(map(_names_no_encoding, contents[file.id].split(b"\n"))):
            reason = f"{_show(file.path)} has {_ENCODING.decode()} without a value, with which git checks nothing out"
            raise Unacceptable(reason, f"write {_ENCODING.decode()}=UTF-16, or which encoding the files have")


def _names_no_encoding(line: bytes) -> bool:
    """Return whether a line of a file with attributes may set the encoding of files to none."""
    pattern, *attributes = line.split() or [b"#"]
    if pattern.startswith(b'"'):  # it may hold spaces, and no space need follow it
        attributes = [word.rpartition(b'"')[2] for word in (pattern, *attributes)]
    return not pattern.startswith(b"#") and _ENCODING in attributes


def leaves(path: str, links: Mapping[str, str]) -> bool:
    """Return whether following `path` leads out of the tree; `links` maps every link of the tree to its target.

    After 40 links the system stops (ELOOP): a loop leads nowhere, and a longer chain is found when a later link of it
    is checked.
    """
    folder: list[str] = []
    ahead = path.split("/")[::-1]
    followed = 0
    while ahead and followed <= _MAX_FOLLOWED:
        name = ahead.pop()
        if name == "..":
            if not folder:
                return True
            folder.pop()
        elif name not in ("", "."):
            target = links.get("/".join((*folder, name)))
            if target is None:
                folder.append(name)
            elif target.startswith("/"):
                return True
            else:
                ahead.extend(target.split("/")[::-1])
                followed += 1
    return False


def _show(path: str) -> str:
    """Return a path as one safe word of a message."""
    text = os.fsencode(path).decode("utf-8", "replace")
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown if len(shown) <= 200 else shown[:200] + "…"
