"""When a file in an agent's clone was last changed: a walk in a thread, bounded, that follows no link.

Some tools edit without a word of it in what their program prints; before an agent counts as idle somebody looks.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_ENTRIES = 20_000  # of a clone that are looked at
PASSED_OVER = frozenset({"__pycache__", "node_modules"})  # and whatever is hidden: written by tools, not by an agent


def last_edit(clone: Path) -> float | None:
    """How many seconds ago a file was changed, the last of them. What is said to be changed in the future is not
    believed: it would count for ever."""
    now = time.time()
    times = [each for each in islice(_changes(clone), MAX_ENTRIES) if each <= now]
    last = max(times, default=-math.inf)
    return now - last if last > -math.inf else None


def _changes(clone: Path) -> Iterator[float]:
    """When each file was changed, seconds since the epoch, and never of what is none; the nearest first."""
    folders = deque([str(clone)])
    while folders:
        # What is gone by the time that it is looked at is passed over.
        with contextlib.suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                ours = entry.name.startswith(".") or entry.name in PASSED_OVER
                if not ours and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                is_file = not ours and entry.is_file(follow_symlinks=False)
                yield entry.stat(follow_symlinks=False).st_mtime if is_file else -math.inf
