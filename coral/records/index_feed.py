"""Keeps the index of records up to date, in worker threads.

The index is a view: a record that cannot be written into it now is added with the next one, or by a reader; nobody
waits for it, and nothing is decided by it.
"""

import contextlib
import threading
from collections import deque
from concurrent.futures import Executor
from pathlib import Path

from attempts.index.index import Index
from attempts.record import Attempt

KEPT = 1000  # records that wait while the index is locked; readers add older ones themselves


class IndexFeed:
    def __init__(self, folder: Path, pool: Executor) -> None:
        self._folder = folder
        self._pool = pool
        self._waiting: deque[Attempt] = deque(maxlen=KEPT)
        self._one_at_a_time = threading.Lock()
        pool.submit(self._catch_up)

    def add(self, attempt: Attempt) -> None:
        """Add a record that was just written. Safe in any thread."""
        self._waiting.append(attempt)
        with contextlib.suppress(RuntimeError):  # the run has ended: readers will find it
            self._pool.submit(self._write)

    def _write(self) -> None:
        """Write all waiting records in one transaction."""
        with self._one_at_a_time:
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if batch and not Index(self._folder).add(batch):
                self._waiting.extendleft(reversed(batch))

    def _catch_up(self) -> None:
        """Add the records that were published while no supervisor ran; all of them, if there is no usable index."""
        with contextlib.closing(Index(self._folder)) as index:
            index.refresh()
