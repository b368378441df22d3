"""When a file in an agent's clone was last changed: a walk in a thread, bounded, that follows no link.

Some tools edit without a word of it in what their program prints; before an agent counts as idle somebody looks.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

from coral.fleet.actions import ScanEdits
from coral.fleet.events import EditsScanned
from coral.supervisor.workers import WorkerPool

MAX_ENTRIES = 20_000  # of a clone that are looked at
PASSED_OVER = frozenset({"__pycache__", "node_modules"})  # and whatever is hidden: written by tools, not by an agent


class EditScanner:
    def __init__(self, pool: WorkerPool, ring: Callable[[], None]) -> None:
        """`ring`: what to do when one is over."""
        self._pool = pool
        self._ring = ring
        self._under_way: dict[Future[float | None], ScanEdits] = {}

    def begin(self, look: ScanEdits, clone: Path) -> None:
        future = self._pool.submit(last_edit, clone)
        self._under_way[future] = look
        future.add_done_callback(lambda _: self._ring())

    def over(self) -> list[EditsScanned]:
        """What was found since it was asked last. A clone that cannot be read has no edits."""
        done = [each for each in self._under_way if each.done()]
        return [_found(self._under_way.pop(each), each) for each in done]


def _found(look: ScanEdits, future: Future[float | None]) -> EditsScanned:
    edited = None if future.exception() is not None else future.result()
    return EditsScanned(agent=look.agent, launch=look.launch, edited=edited)


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
