"""Reads and writes folders and files where agents may have put anything: no call follows a link, blocks, or runs
without a bound."""

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from operator import attrgetter
from pathlib import Path

MAX_NAMES = 20_000  # names that one walk reads: folders may contain nothing but folders
OWN_USERS = range(0x7000_0000, 0x8000_0000)  # the numbers of users and groups that `workspace.owner` gives out


def number_of_candidates(number: int) -> int:
    """Return the user as which the candidates of a grade run, from the user of the grade, whose number is even."""
    return number | 1


def read_plain(path: str | Path, most: int, *, follow: bool = False, place: int | None = None) -> bytes | None:
    """Return the first `most` bytes of a regular file; None if there is none. A link is followed only with `follow`.
    `place`: a descriptor of the folder to which a relative path is relative."""
    # Without O_NONBLOCK, a pipe in the place of a file would block the reader for ever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        file = os.open(path, flags, dir_fd=place)
        try:
            found = os.fstat(file)  # a buffer of `most` bytes for each of thousands of small files takes time
            return os.read(file, min(found.st_size, most)) if stat.S_ISREG(found.st_mode) else None
        finally:
            os.close(file)
    except OSError:
        return None


def read_below(folder: Path, name: str, most: int) -> bytes | None:
    """Do the same as `read_plain` for `folder/name`; None also if the folder or one below it on the way is a link."""
    try:
        with folder_of(folder, name) as place:
            return read_plain(Path(name).name, most, place=place)
    except OSError:
        return None


def write_below(folder: Path, name: str, data: bytes) -> None:
    """Write `folder/name` whole or not at all, and make the folders above it; a link in its place is replaced. OSError
    if the folder or one below it on the way is a link, even if that was made only a moment ago."""
    temporary, flags = f".coral-{secrets.token_hex(8)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with folder_of(folder, name, make=True) as place:
        with open(os.open(temporary, flags, 0o644, dir_fd=place), "wb") as file:
            file.write(data)
            give_like(file.fileno(), place)
        _put(temporary, name, place)


def link_below(folder: Path, name: str, target: str) -> None:
    """Make `folder/name` a link to the target, as `write_below` makes a file."""
    temporary = f".coral-{secrets.token_hex(8)}"
    with folder_of(folder, name, make=True) as place:
        os.symlink(target, temporary, dir_fd=place)
        if (owner := _other_owner(place)) is not None:
            os.chown(temporary, *owner, dir_fd=place, follow_symlinks=False)
        _put(temporary, name, place)


@contextlib.contextmanager
def folder_of(folder: Path, name: str, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder that contains `folder/name`. OSError if it, or a folder on the way to it, is a
    link. `make`: make the missing folders below `folder`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(folder, flags)
    try:
        for part in Path(name).parts[:-1]:
            is_new = False
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=place)
                    is_new = True
            inner = os.open(part, flags, dir_fd=place)
            if is_new:
                give_like(inner, place)
            os.close(place)
            place = inner
        yield place
    finally:
        os.close(place)


def give_like(new: int, folder: int) -> None:
    """Give a new file or folder, which root has made, to the owner of its folder; both by descriptors. If the folder
    passes its group on, and that is one of `OWN_USERS`, the group gets the rights that the owner has, as far as it has
    them on the folder."""
    if (owner := _other_owner(folder)) is not None:
        os.fchown(new, *owner)
    found, mode = os.fstat(folder), stat.S_IMODE(os.fstat(new).st_mode)
    if found.st_mode & stat.S_ISGID and found.st_gid in OWN_USERS:
        os.fchmod(new, mode | (mode >> 3 & found.st_mode & stat.S_IRWXG))


def _other_owner(folder: int) -> tuple[int, int] | None:
    """Return the owner and group of a folder, if we are root and the owner is one of `OWN_USERS`; else None."""
    found = os.fstat(folder)
    return (found.st_uid, found.st_gid) if found.st_uid in OWN_USERS and os.geteuid() == 0 else None


def _put(temporary: str, name: str, place: int) -> None:
    try:
        os.replace(temporary, Path(name).name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        os.unlink(temporary, dir_fd=place)
        raise


def walk(
    folder: Path, deepest: int, most_in_folder: int, is_wanted: Callable[[str], bool] = lambda name: name[0] != "."
) -> Iterator[os.DirEntry[str]]:
    """Return the regular files in a folder and at most `deepest` levels below it, sorted by name; names that are not
    wanted are skipped."""
    return _walk(str(folder), deepest, most_in_folder, is_wanted, repeat(None, MAX_NAMES))


def _walk(
    folder: str, deepest: int, most_in_folder: int, is_wanted: Callable[[str], bool], names: Iterator[None]
) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, most_in_folder), key=attrgetter("name"))
    except OSError:
        return
    wanted = (entry for entry in found if is_wanted(entry.name))
    for entry, _ in zip(wanted, names, strict=False):
        try:
            is_file, is_folder = entry.is_file(follow_symlinks=False), entry.is_dir(follow_symlinks=False)
        except OSError:
            continue
        if is_file:
            yield entry
        elif deepest and is_folder:
            yield from _walk(entry.path, deepest - 1, most_in_folder, is_wanted, names)
