"""Threads for what may block: a few at a time, and who is stuck makes room.

Work that takes longer than `patience` no longer counts as one of the few, so that four hanging gits cannot hold up all
others; only how many hang at once is bounded.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from workspace.cancellation import CancelToken

WIDTH = 4
MOST = 24  # threads, those that are stuck counted
PATIENCE = 5.0  # seconds


class WorkerPool(Executor):
    def __init__(self, width: int = WIDTH, most: int = MOST, patience: float = PATIENCE) -> None:
        self._width, self._most, self._patience = width, most, patience
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="coral")
        self._waiting: deque[tuple[Future[Any], CancelToken, Callable[[], Any]]] = deque()
        self._running: dict[Future[Any], tuple[CancelToken, float]] = {}
        self._lock = threading.RLock()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self.submit_cancellable(CancelToken(), function, *arguments, **named)

    def submit_cancellable(
        self, token: CancelToken, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Future[Any]:
        """Submit it on a leash: cut, it ends soon, and does not begin if it has not."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, token, lambda: function(*arguments, **named)))
        self.advance()
        return future

    def advance(self) -> None:
        """Begin what there is room for. Called when work comes and ends, and now and then: somebody may be stuck."""
        with self._lock:
            now = time.monotonic()
            moving = sum(now - since < self._patience for _, since in self._running.values())
            while self._waiting and moving < self._width and len(self._running) < self._most:
                future, token, call = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    self._running[future] = (token, now)
                    begun = self._threads.submit(token.around, call)
                    begun.add_done_callback(partial(self._over, future))
                    moving += 1

    def finish(self, seconds: float) -> None:
        """No more is taken. What has not ended by itself in so many seconds is cut, or does not begin."""
        with self._lock:
            waiting = [(future, token) for future, token, _ in self._waiting]
            left = [*waiting, *((future, token) for future, (token, _) in self._running.items())]
        wait([future for future, _ in left], seconds)
        with self._lock:
            self._waiting.clear()
        for _, token in left:
            token.cancel()
        self._threads.shutdown()

    def _over(self, future: Future[Any], done: Future[Any]) -> None:
        with self._lock:
            del self._running[future]
        if (error := done.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())
        self.advance()
