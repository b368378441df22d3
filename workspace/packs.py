"""Keeps the packs of the hub as they were made: git trusts what the index of a pack says, and reads packs before loose
objects. An agent that is not sealed can remove, alter and add packs."""

import contextlib
import filecmp
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from workspace.errors import GitError
from workspace.git import Git

COPIED = 1 << 24  # bytes: a larger file gets a hard link, which restores it unless somebody writes into it
_PARTS = (".pack", ".idx", ".rev")

_Stamp = tuple[int, int, int]


class Packs:
    def __init__(self, hub: Path, kept: Path) -> None:
        """`kept`: the folder for copies. If there is none yet, all packs of the hub are taken as genuine. OSError if
        they cannot be copied."""
        self._hub, self._folder, self._kept = hub, hub / "objects" / "pack", kept
        self._seen: dict[str, _Stamp | None] = {}
        self._lock = threading.Lock()
        if not kept.is_dir():
            building = kept.with_name(f".{kept.name}.partial")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir(mode=0o700)
            for index in self._folder.glob("pack-*.idx"):
                self._keep(index, building)
            building.rename(kept)

    def restore(self) -> list[tuple[str, str, str]]:
        """Restore packs that are not as they were. Returns for each file its name, what was wrong, and from what it was
        restored, "" if it could not be. A new pack stays if git can verify it. May be called in any thread."""
        with self._lock:
            return [*self._put_back(), *self._look_at_new()]

    def _put_back(self) -> Iterator[tuple[str, str, str]]:
        for copy in sorted(self._kept.glob("pack-*")):
            place = self._folder / copy.name
            before, now = self._seen.get(copy.name), _stamp(place)
            if now is None or now != before:
                found, source = _what_happened(copy, place, is_known=before is not None), "a copy"
                if found and not _is_same(copy, place):
                    _put(copy, place)
                elif found:
                    source = ""  # the copy is the same file
                if found:
                    yield f"objects/pack/{copy.name}", found, source
                self._seen[copy.name] = _stamp(place)

    def _look_at_new(self) -> Iterator[tuple[str, str, str]]:
        for index in sorted(self._folder.glob("pack-*.idx")):
            if (self._kept / index.name).exists() or not index.with_suffix(".pack").exists():
                continue
            try:
                Git(self._hub).run("verify-pack", str(index))
            except GitError:
                for part in _PARTS:
                    with contextlib.suppress(FileNotFoundError):
                        path = index.with_suffix(part)
                        path.rename(path.with_name(f".{path.name}.foreign-{secrets.token_hex(8)}"))
                yield f"objects/pack/{index.stem}", "was added, with a false index", "the run's start"
            else:
                self._keep(index, self._kept)

    def _keep(self, index: Path, folder: Path) -> None:
        for path in map(index.with_suffix, _PARTS):  # the index last of the two that every pack has
            if _stamp(path) is not None:
                _put(path, folder / path.name)


def _put(source: Path, target: Path) -> None:
    """Copy a file, whole or not at all; a large file gets a second name instead."""
    temporary = target.with_name(f".{secrets.token_hex(8)}")
    try:
        if source.stat().st_size > COPIED:
            with contextlib.suppress(OSError):  # another disk, or one without second names
                os.link(source, temporary, follow_symlinks=False)
        if not temporary.exists():
            shutil.copy2(source, temporary, follow_symlinks=False)
        if target.is_dir() and not target.is_symlink():
            target.rename(target.with_name(f".{target.name}.foreign-{secrets.token_hex(8)}"))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _what_happened(copy: Path, place: Path, *, is_known: bool) -> str:
    """Return what was done to a file; "" if it is as it was. `is_known`: the file was compared before, and its stamp
    has changed since."""
    if not os.path.lexists(place):
        return "was deleted"
    if _stamp(place) is None:
        return "was replaced"
    if _is_same(copy, place):
        return "was written to" if is_known else ""
    return "" if filecmp.cmp(copy, place, shallow=False) else "was altered"


def _is_same(copy: Path, place: Path) -> bool:
    return _stamp(place) is not None and copy.samefile(place)


def _stamp(path: Path) -> _Stamp | None:
    """Return the figures that every change of a file changes; None if there is no regular file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_ctime_ns) if stat.S_ISREG(found.st_mode) else None
