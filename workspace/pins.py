"""Keeps the commits of attempts in the hub, each under its reference. An agent that is not sealed can remove both."""

import os
import shutil
from pathlib import Path

from workspace.errors import GitError, WorkspaceError
from workspace.git import Git
from workspace.intake import SEED, pin, pinned, reference_of, take_in
from workspace.layout import Layout
from workspace.loose_object import object_file


class Pins:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lost: set[int] = set()

    def restore(self, number: int, agent: str, commit: str) -> tuple[str, str] | None:
        """Put back the commit of an attempt and its reference. Returns what was wrong, and from what it was restored:
        empty if it could not be, which is said once. None if all is well."""
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


def _has(hub: Path, commit: str) -> bool:
    if object_file(hub / "objects", commit).is_file():
        return True
    try:
        Git(hub).run("cat-file", "-e", commit)
    except GitError:
        return False
    return True


def restore_seed(hub: Path, commit: str) -> bool:
    """Make the reference of the seed name this commit; returns whether it did not."""
    place = hub / SEED
    try:
        is_right = not place.is_symlink() and place.read_text(encoding="ascii").strip() == commit
    except (OSError, UnicodeDecodeError):
        is_right = False
    if not is_right:
        remove(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{commit}\n")
    return not is_right


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
