"""Reads folders and files where agents may have put anything: no call follows a link, blocks, or takes for ever."""

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from operator import attrgetter
from pathlib import Path

MAX_NAMES = 20_000  # read by one walk: folders may hold nothing but folders


def read_plain(path: str | Path, most: int, *, follow: bool = False, place: int | None = None) -> bytes | None:
    """The first `most` bytes of a regular file; None where there is none. A link counts only with `follow`. `place`: a
    descriptor of the folder in which a relative path begins."""
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
    """The same of `folder/name`, where the folder and those below it count only if they are no links either."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    *folders, last = Path(name).parts
    try:
        place = os.open(folder, flags)
        try:
            for part in folders:
                inner = os.open(part, flags, dir_fd=place)
                os.close(place)
                place = inner
            return read_plain(last, most, place=place)
        finally:
            os.close(place)
    except OSError:
        return None


def walk(
    folder: Path, deepest: int, most_in_folder: int, is_wanted: Callable[[str], bool] = lambda name: name[0] != "."
) -> Iterator[os.DirEntry[str]]:
    """Regular files in a folder and `deepest` levels below it, by name; only wanted names are read."""
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
