"""Keeps the index of records up to date, off the loop. It is a view: what cannot be written now is left to the next
time, or to whoever looks; nobody waits for it, and nothing is decided by it.
"""

import contextlib
import threading
from collections import deque
from concurrent.futures import Executor
from pathlib import Path

from attempts.index.index import Index
from attempts.record import Attempt

KEPT = 1000  # records that wait for a file that somebody holds; readers find older ones by themselves


class IndexFeed:
    def __init__(self, folder: Path, pool: Executor) -> None:
        self._folder = folder
        self._pool = pool
        self._waiting: deque[Attempt] = deque(maxlen=KEPT)
        self._one_at_a_time = threading.Lock()
        pool.submit(self._catch_up)

    def add(self, attempt: Attempt) -> None:
        """A record that was just written, from whatever thread."""
        self._waiting.append(attempt)
        with contextlib.suppress(RuntimeError):  # the run has ended: readers will find it
            self._pool.submit(self._write)

    def _write(self) -> None:
        """All that waits at once: what came while the file was held costs one change of it."""
        with self._one_at_a_time:
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if batch and not Index(self._folder).add(batch):
                self._waiting.extendleft(reversed(batch))

    def _catch_up(self) -> None:
        """What was published while nobody fed it, or all, where there is no index that can be used."""
        index = Index(self._folder)
        try:
            index.refresh()
        finally:
            index.close()
