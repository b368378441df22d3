"""Collects the objects that a clone has itself, as hard links in a folder of ours, where git can read them.

Git follows links and alternates: by one in its object store a clone could borrow from a repository that we can read and
its agent cannot, also by one that is there for a moment alone. So no folder of the clone is opened through a link, and
git gets our folder, in which nobody replaces what was looked at.
"""

import contextlib
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from workspace.errors import Unacceptable
from workspace.loose_object import object_file, parse_header
from workspace.plain_file import folder_of, read_plain

_PACK = re.compile(r"pack-[0-9a-f]{40,64}\.(pack|idx)")
_REST = re.compile("[0-9a-f]{38}|[0-9a-f]{62}")  # of an id, behind the name of its folder
_PACKS = 10_000  # names that are read of the folder of packs
_HEAD = 65536  # bytes of an object that are read to see what it is
_READ = 500_000_000  # bytes of folders and commits that are looked through; git reads no more of a commit in good time
_COMMIT, _FOLDER, _FILE, _REPOSITORY = b"commit", b"4", b"1", b"16"  # the last three: how the mode of an entry begins
_STORE = ".git/objects"


class OwnObjects:
    """The objects of a clone, collected in the folder `into`. `link`: the first link that lay in the place of one of
    its files or folders; "" if there was none."""

    def __init__(self, clone: Path, into: Path) -> None:
        self.link = ""
        self._clone, self._into = clone, into
        self._left = _READ

    def collect_commit(self, commit: str, known: Path, most: int) -> None:
        """Collect a commit and what it refers to, up to `most` objects. What the object store `known` has is left out,
        and what a commit there refers to. From a clone with packs all is collected, since what is in a pack may refer
        to anything. Unacceptable if the clone has no repository."""
        if self._collect_packs():
            self._collect_unpacked(most)
            return
        ahead, looked = [(commit, _COMMIT)], set[str]()
        while ahead and len(looked) < most:
            name, kind = ahead.pop()
            # By a path, which may lead anywhere: that says only what is worth trying.
            if name in looked or not os.path.lexists(object_file(self._clone / _STORE, name)):
                continue
            looked.add(name)
            place = object_file(known, name)
            if not place.exists():
                place = object_file(self._into, name)
                if not self._take(name[:2], name[2:]):
                    continue
            elif kind == _COMMIT:
                continue
            ahead += self._named(place, len(name) // 2) if kind != _FILE else ()

    def collect(self, wanted: Sequence[str]) -> None:
        """Collect these objects and all packs. Unacceptable if the clone has no repository."""
        self._collect_packs()
        for name in wanted:
            self._take(name[:2], name[2:])

    def _collect_packs(self) -> bool:
        """Collect all packs; return whether there are any."""
        self._check_store()
        taken = [self._take("pack", name) for name in self._names("pack", _PACKS) if _PACK.fullmatch(name)]
        self._note_link("pack")
        return any(taken)

    def _collect_unpacked(self, most: int) -> None:
        for folder in (f"{number:02x}" for number in range(256)):
            for name in filter(_REST.fullmatch, self._names(folder, most)):
                most -= self._take(folder, name)

    def _names(self, folder: str, most: int) -> list[str]:
        """Return the first names in a folder of the store; none if there is no such folder."""
        place = folder_of(self._clone, f"{_STORE}/{folder}/any")
        with contextlib.suppress(OSError), place as descriptor, os.scandir(descriptor) as entries:
            return [entry.name for entry in islice(entries, most)]
        return []

    def _check_store(self) -> None:
        try:
            with folder_of(self._clone, f"{_STORE}/any"):
                pass
        except OSError as error:
            for part in (".git", _STORE):
                if (self._clone / part).is_symlink():
                    raise Unacceptable(f"{part} of its clone is a link", "put the folder itself there") from error
            hint = "git init will not help: ask the operator"
            raise Unacceptable("its clone has no repository any more", hint) from error

    def _take(self, folder: str, name: str) -> bool:
        """Put a file of the store into our folder, if it is a plain one; return whether it is."""
        target = self._into / folder / name
        target.parent.mkdir(exist_ok=True)
        try:
            with folder_of(self._clone, f"{_STORE}/{folder}/{name}") as place:
                try:
                    os.link(name, target, src_dir_fd=place, follow_symlinks=False)
                except FileNotFoundError:
                    return False
                except OSError:  # this disk has no hard links, or the file belongs to somebody else
                    _copy(name, place, target)
        except OSError:
            self._note_link(folder)
            self._note_link(f"{folder}/{name}")
            return False
        if stat.S_ISREG(target.lstat().st_mode):
            return True
        self._note_link(f"{folder}/{name}")
        target.unlink()
        return False

    def _note_link(self, path: str) -> None:
        if not self.link and (self._clone / _STORE / path).is_symlink():
            self.link = f"{_STORE}/{path}"

    def _named(self, path: Path, size: int) -> list[tuple[str, bytes]]:
        """Return the ids in a folder or commit, each with what it should be; the next one to look at last. `size`: the
        length of an id in bytes."""
        try:
            kind, _, body = _content(path, _HEAD).partition(b"\0")
            if kind.startswith(b"commit ") and (header := parse_header(body)):
                return [*((parent, _COMMIT) for parent in header.parents), (header.tree, _FOLDER)]
            if not kind.startswith(b"tree "):
                return []
            content = _content(path, self._left)
        except zlib.error:
            return []
        self._left -= len(content)
        return list(_entries(content.partition(b"\0")[2], size))


def _copy(name: str, place: int, target: Path) -> None:
    """Copy a plain file of a folder, given by its descriptor. OSError if it is none."""
    with os.fdopen(
        os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place), "rb"
    ) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{name} is no plain file")
        with target.open("xb") as copy:
            while piece := file.read(1 << 20):
                copy.write(piece)


def _content(path: Path, most: int) -> bytes:
    return zlib.decompressobj().decompress(read_plain(path, most) or b"", max(most, 1))


def _entries(content: bytes, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each entry of a folder but repositories, and whether that is a folder or a file."""
    place = 0
    while (end := content.find(b"\0", place)) >= 0:
        if not content.startswith(_REPOSITORY, place):
            kind = _FOLDER if content.startswith(_FOLDER, place) else _FILE
            yield content[end + 1 : end + 1 + size].hex(), kind
        place = end + 1 + size
