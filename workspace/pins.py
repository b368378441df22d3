"""Keeps the commits of attempts in the hub, each under its reference, and their files. An agent that is not sealed can
remove all of that."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from workspace.errors import GitError, WorkspaceError
from workspace.git import Git
from workspace.intake import SEED, bring, missing, pin, pinned, reference_of, take_in
from workspace.layout import Layout
from workspace.loose_object import object_file
from workspace.plain_file import read_plain


class Pins:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lost: set[int] = set()
        self._lost_files: set[int] = set()
        self._stamps: tuple[int, ...] = ()
        self._first: int | None = None  # the attempt with which the present round began
        self._has_changed = True

    def restore(self, number: int, agent: str, commit: str) -> tuple[str, str] | None:
        """Restore the commit of an attempt and its reference. Returns what was wrong, and from what it was restored, ""
        if it could not be, which is reported once. None if nothing was wrong."""
        hub = self._layout.hub
        known, has_commit = pinned(hub, number), _has(hub, commit)
        if known == commit and has_commit:
            return None
        if known != commit:
            remove(reference_of(hub, number))
        try:
            if has_commit:
                pin(hub, number, commit)
                return ("was altered" if known else "was deleted"), "its record"
            take_in(hub, self._layout.clone(agent), commit, number)
        except (WorkspaceError, OSError):  # the clone does not have it any more
            if number in self._lost:
                return None
            self._lost.add(number)
            return "was deleted", ""
        return "was deleted", f"the workspace of {agent}"

    def restore_files(self, attempts: Mapping[int, tuple[str, str]]) -> dict[int, tuple[str, str]]:
        """Restore what the trees of these attempts lack. `attempts`: author and commit by number. Returns by number
        what was wrong, as `restore`.

        The attempts come in rounds, a part of them at each call. Once a round is complete and nothing was added to the
        hub or removed from it since its beginning, calls return at once.
        """
        if (stamps := _stamps(self._layout.hub)) != self._stamps:
            self._stamps, self._first, self._has_changed = stamps, None, True
        if not attempts or not self._has_changed:
            return {}
        self._has_changed = self._first not in attempts
        self._first = next(iter(attempts)) if self._first is None else self._first
        with contextlib.suppress(GitError):  # one of the commits is gone
            if not missing(self._layout.hub, [commit for _, commit in attempts.values()]):
                return {}
        found = {number: self._restore_files_of(number, *attempt) for number, attempt in attempts.items()}
        return {number: wrong for number, wrong in found.items() if wrong}

    def _restore_files_of(self, number: int, agent: str, commit: str) -> tuple[str, str] | None:
        hub, before = self._layout.hub, list[str]()
        if not _has(hub, commit):
            return None  # `restore` reports that
        try:
            while absent := missing(hub, [commit]):  # a folder that is back may lack files
                if absent == before:
                    raise GitError("the workspace has something else in its place")
                bring(hub, self._layout.clone(agent), absent, number)
                before = absent
        except (WorkspaceError, OSError):
            is_known = number in self._lost_files
            self._lost_files.add(number)
            return None if is_known else ("was deleted", "")
        return ("was deleted", f"the workspace of {agent}") if before else None


def _stamps(hub: Path) -> tuple[int, ...]:
    """Return the figures that change when a loose object is added or removed."""
    found = []
    for number in range(256):
        with contextlib.suppress(OSError):
            found.append(os.lstat(hub / "objects" / f"{number:02x}").st_ctime_ns)
    return tuple(found)


def _has(hub: Path, commit: str) -> bool:
    if object_file(hub / "objects", commit).is_file():
        return True
    try:
        Git(hub).run("cat-file", "-e", commit)
    except GitError:
        return False
    return True


def restore_seed(hub: Path, commit: str) -> bool:
    """Make the reference of the seed name this commit; returns whether it named another. The time of the reference said
    when the seed was read. That is not known any more, so that `seed.differences` compares all files."""
    place = hub / SEED
    is_right = (read_plain(place, len(commit) + 2) or b"").strip() == commit.encode()
    if not is_right:
        remove(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{commit}\n")
        os.utime(place, (0, 0))
    return not is_right


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
