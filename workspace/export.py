"""Reads the files of a commit as a checkout would write them, without writing them, to send them elsewhere.

`git archive` reads them in one process. It converts line ends as a checkout does; but where attributes say so, it
leaves files out or fills texts in, and agents can write to the objects that it reads. So its files are taken only if
they give the id of the commit.
"""

import os
import stat
import tarfile
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from workspace.errors import GitError
from workspace.genuine import Entry, entry_of, entry_of_folder, tree_of_commit
from workspace.git import MEGABYTE, Git
from workspace.intake import full

LARGEST = 16 * MEGABYTE  # bytes of an archive; a larger commit is checked out
# Files get the modes that a checkout gives them.
_MODES = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "tar.umask", "GIT_CONFIG_VALUE_0": "user"}
_KINDS = {tarfile.REGTYPE: stat.S_IFREG, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.DIRTYPE: stat.S_IFDIR}


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
        with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
            files = [_file(archive, member) for member in archive]
    except (GitError, tarfile.TarError):  # a checkout says why; Python reads no archive that is empty
        return None
    return files if _id_of(files, len(commit)) == tree else None


def _file(archive: tarfile.TarFile, member: tarfile.TarInfo) -> ExportedFile:
    file = archive.extractfile(member) if member.isreg() else None
    content = os.fsencode(member.linkname) if file is None else file.read()
    return ExportedFile(member.name, _KINDS[member.type] | member.mode, content)


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
