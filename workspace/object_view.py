"""A clone's objects as git may read them: those that lie in the clone, and nothing that the clone's lead to.

By its alternates a clone could borrow from a repository that we may read and its agent may not; so git is shown a
folder of links that has none. It is kept and checked, since making 256 links anew costs more than taking a commit in;
the links are relative, so a copied run folder reads its own clones.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from itertools import islice
from pathlib import Path

_HEX = re.compile("[0-9a-f]{2}")
_FOLDERS = 1_000  # looked at among a clone's objects; it has 256, and a few more
_FILES = 100_000  # looked at in each of them


def objects_of(clone: Path, views: Path) -> Path:
    """The folder that shows the objects of a clone, made or brought up to date, below `views`."""
    theirs, view = clone / ".git" / "objects", views / clone.name
    view.mkdir(parents=True, exist_ok=True)
    inside = clone.parent.resolve() / clone.name / ".git" / "objects"  # wherever the agent's own links lead, it is that
    start = os.path.relpath(inside, view.resolve())
    wanted = {path.name for path in islice(theirs.iterdir(), _FOLDERS) if _HEX.fullmatch(path.name)} | {"pack"}
    for name in {path.name for path in view.iterdir()} - wanted:
        _remove(view / name)
    for name in wanted:
        _link(view / name, f"{start}/{name}")
    return view


def may_hold_up(view: Path) -> bool:
    """Whether something among these objects is neither file nor folder: who opens a pipe waits for its writer."""
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
    with contextlib.suppress(FileExistsError):  # another commit of this clone is taken in meanwhile
        path.symlink_to(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
