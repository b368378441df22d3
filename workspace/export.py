"""Reads the files of a commit as a checkout would write them, without writing them, to send them elsewhere.

`git archive` reads them in one process. It converts line ends as a checkout does; but where attributes say so, it
leaves files out or fills texts in, and agents can write to the objects that it reads. So its files are taken only if
they give the id of the commit.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workspace.errors import GitError
from workspace.genuine import Entry, entry_of, entry_of_folder, tree_of_commit
from workspace.git import MEGABYTE, Git
from workspace.intake import full

LARGEST = 16 * MEGABYTE  # bytes of an archive; a larger commit is checked out
# Files get the modes that a checkout gives them.
_MODES = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "tar.umask", "GIT_CONFIG_VALUE_0": "user"}
_KINDS = {b"0": stat.S_IFREG, b"2": stat.S_IFLNK, b"5": stat.S_IFDIR}  # by their type in an archive
_ABOUT_ALL = b"g"  # the type of an entry that is no file: it has the id of the commit
_BLOCK = 512


class ExportedFile(NamedTuple):
    """A file, folder or link. `mode`: as in `os.stat_result.st_mode`; `content`: the bytes of a file, the target of a
    link, nothing of a folder."""

    name: str
    mode: int
    content: bytes


def export(hub: Path, commit: str) -> list[ExportedFile] | None:
    """Return all files, folders and links of a commit, by their paths from its top; None if only a checkout can tell
    what they are, as where line ends are converted, or if they are larger than LARGEST. Unacceptable if the commit
    differs from its id."""
    tree = tree_of_commit(hub, full(commit))
    try:
        data = Git(hub, **_MODES).run("archive", "--format=tar", full(commit), limit=LARGEST)
        files = list(_files(data))
    except (GitError, _NotPlain, ValueError):  # a checkout says why
        return None
    # Agents may write a folder that has a name twice: a node could not write both.
    is_whole = len({file.name for file in files}) == len(files) and _id_of(files, len(commit)) == tree
    return files if is_whole else None


class _NotPlain(Exception):  # noqa: N818
    """An archive has more than plain entries, as for names of more than a hundred bytes."""


def _files(data: bytes) -> Iterator[ExportedFile]:
    """Yield what an archive of git has. The module tarfile takes as long for it as git for making it."""
    place = 0
    while place < len(data) and data[place]:  # zeros follow the last entry
        head, start = data[place : place + _BLOCK], place + _BLOCK
        size, kind = int(head[124:136].rstrip(b"\0 "), 8), head[156:157]
        place = start + -(-size // _BLOCK) * _BLOCK
        if kind == _ABOUT_ALL:
            continue
        if kind not in _KINDS or head[345]:  # a name in two parts
            raise _NotPlain
        content = head[157:257].rstrip(b"\0") if kind == b"2" else data[start : start + size]
        name = os.fsdecode(head[:100].rstrip(b"\0/"))
        yield ExportedFile(name, _KINDS[kind] | int(head[100:107], 8), content)


def _id_of(files: list[ExportedFile], length: int) -> str:
    """Return the id of the tree with these files; empty if a folder has none, which a checkout does not make. `length`:
    how long the ids of this repository are."""
    inside = defaultdict[str, list[Entry]](list)  # by the path of their folder
    for file in sorted(files, key=lambda file: -file.name.count("/")):  # what is in a folder before the folder
        above, _, name = file.name.rpartition("/")
        if stat.S_ISDIR(file.mode):
            if file.name not in inside:
                return ""
            inside[above].append(entry_of_folder(os.fsencode(name), inside[file.name], length))
        else:
            inside[above].append(entry_of(os.fsencode(name), file.mode, file.content, length))
    return entry_of_folder(b"", inside[""], length)[2]
