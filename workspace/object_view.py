"""A view of a clone's object store without its alternates.

By its alternates a clone could borrow from a repository that we can read and its agent cannot; so git gets a folder of
links to the clone's own objects. The folder is kept and brought up to date, since making 256 links takes longer than
taking a commit in. The links are relative: a copied run folder reads its own clones.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from itertools import islice
from pathlib import Path

_HEX = re.compile("[0-9a-f]{2}")
_FOLDERS = 1_000  # read of a clone's object store; it has 256, and a few more
_FILES = 100_000  # read of each of them


def objects_of(clone: Path, views: Path) -> Path:
    """The view of a clone's objects, below `views`, made or brought up to date."""
    theirs, view = clone / ".git" / "objects", views / clone.name
    view.mkdir(parents=True, exist_ok=True)
    inside = clone.parent.resolve() / clone.name / ".git" / "objects"  # links that the agent made are not resolved
    start = os.path.relpath(inside, view.resolve())
    wanted = {path.name for path in islice(theirs.iterdir(), _FOLDERS) if _HEX.fullmatch(path.name)} | {"pack"}
    for name in {path.name for path in view.iterdir()} - wanted:
        _remove(view / name)
    for name in wanted:
        _link(view / name, f"{start}/{name}")
    return view


def may_block(view: Path) -> bool:
    """Whether one of these objects is neither file nor folder: whoever opens a pipe waits for its writer."""
    for folder in view.iterdir():
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            if any(not (entry.is_file() or entry.is_dir()) for entry in islice(entries, _FILES)):
                return True
    return False


def _link(path: Path, target: str) -> None:
    try:
        if os.readlink(path) == target:  # noqa: PTH115 - a path for each of 256 takes as long as all the rest
            return
    except FileNotFoundError:
        pass
    except OSError:  # no link
        _remove(path)
    else:
        _remove(path)
    with contextlib.suppress(FileExistsError):  # made meanwhile, for another commit of this clone
        path.symlink_to(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
