"""Finds when a file in an agent's clone was last changed: a bounded walk that follows no link, for a worker thread.

Some tools edit files without a word in their program's output: an agent counts as idle only after its clone was
scanned.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_ENTRIES = 20_000  # of a clone that are examined
IGNORED = frozenset({"__pycache__", "node_modules"})  # and hidden files: tools write them, not the agent


def last_edit(clone: Path) -> float | None:
    """Return how many seconds ago a file of the clone was last changed; None if it has none. A time in the future is
    ignored: it would be the last change for ever."""
    now = time.time()
    times = islice(_changes(clone), MAX_ENTRIES)
    last = max((changed_at for changed_at in times if changed_at <= now), default=-math.inf)
    return now - last if last > -math.inf else None


def _changes(clone: Path) -> Iterator[float]:
    """Yield for each entry when it was changed, in seconds since the epoch, or -inf if it is no file or is ignored.
    Entries of the nearest folders come first."""
    folders = deque([str(clone)])
    while folders:
        # A folder that was removed meanwhile is left out.
        with contextlib.suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                ignored = entry.name.startswith(".") or entry.name in IGNORED
                if not ignored and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                is_file = not ignored and entry.is_file(follow_symlinks=False)
                yield _changed_at(entry) if is_file else -math.inf


def _changed_at(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return -math.inf  # removed meanwhile
