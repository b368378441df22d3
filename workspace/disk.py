"""Whether a disk has enough free space, as far as this can be known without writing. Standard library only.

A file system that does not report its free space, as some network file systems, counts as one with space: there only a
failed write shows that it is full.
"""

import errno
import os
import tempfile
from pathlib import Path

from workspace.errors import GitError

MEGABYTE = 1_000_000
LEAST = 8 * MEGABYTE  # with less, nothing new is begun: the rest is for work in progress and for messages
ENOUGH = 12 * MEGABYTE  # with this much again, the work goes on
FEWEST = 200  # so many files must be creatable; with fewer, nothing new is begun
_CODES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_OUT_OF_SPACE = " write error. Out of diskspace"  # git says this of a pack that it cannot write
_ENDINGS = (*(f": {os.strerror(code)}" for code in _CODES), _OUT_OF_SPACE)
MAKE_WRITABLE = "free some space on its disk, or make it writable"
_UNWRITTEN = "unable to write file "  # git says this without a reason
_SQLITE_FULL = 13


def disk_problem_of(folder: Path, least: int = LEAST) -> str:
    """Return what is wrong with the disk of a folder, in words; "" if nothing is, or if it cannot be known. `least`:
    bytes that must be free.

    The folder need not exist yet.
    """
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.absolute().parent
        disk = os.statvfs(folder)
    except OSError:
        return ""
    if disk.f_flag & os.ST_RDONLY:
        return "the disk can only be read"
    blocks, files = (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    if disk.f_blocks and blocks * disk.f_frsize < least:
        return f"the disk is full: {blocks * disk.f_frsize / MEGABYTE:.1f} MB left"
    if disk.f_files and files < FEWEST:
        return f"the disk is full: it can hold {files} more files"
    return ""


def space_problem_of(folder: Path, size: int) -> str:
    """Return why a file of `size` bytes does not fit into the folder, which must exist; "" if it does. Only this finds
    a quota.

    The file has no name and is removed at once. Where the file system cannot reserve space, the bytes are written.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            if hasattr(os, "posix_fallocate"):  # not on macOS
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.write(bytes(size))
    except OSError as error:
        return str(error) if is_disk_problem(error) else ""
    return ""


def is_disk_problem(error: BaseException) -> bool:
    """Return whether something failed because the disk is full, or can only be read.

    Decided by error codes and by git's own words, never by texts with names in them: an agent could stop the fleet by a
    name that it chose.
    """
    if isinstance(error, OSError):
        return error.errno in _CODES
    if isinstance(error, GitError):
        words = [] if error.killed else error.own_words
        is_reported = any(word.endswith(_ENDINGS) or word.startswith(_UNWRITTEN) for word in words)
        return is_reported or (isinstance(error.__cause__, GitError) and is_disk_problem(error.__cause__))
    return getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL


def is_unwritable(error: OSError) -> bool:
    """Return whether a file could not be written because of its folder: this user may not, or a problem of the disk."""
    return isinstance(error, PermissionError) or is_disk_problem(error)
