"""Removes a folder in which a candidate could do what it liked. Standard library only.

The one of Python calls itself for each level, and fails in a folder that is deep, or whose paths are too long.
"""

import contextlib
import os
from pathlib import Path


def remove_tree(folder: str | Path) -> None:
    """Without an error: what cannot be removed stays. A link is removed, and what it leads to is not. What lies in the
    folder's place is removed, a pipe too."""
    path = Path(folder)
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    with contextlib.suppress(OSError):
        path.chmod(0o700)
        prefix, number = f".{os.urandom(8).hex()}", 0  # a name that nobody can have taken
        while entries := list(os.scandir(path)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    Path(entry.path).unlink()
                    continue
                # What is inside moves up, so that no path has more than two levels.
                Path(entry.path).chmod(0o700)
                for inner in list(os.scandir(entry.path)):
                    number += 1
                    Path(inner.path).rename(path / f"{prefix}-{number}")
                Path(entry.path).rmdir()
        path.rmdir()
