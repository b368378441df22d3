"""Worker threads for work that may block. A few run at a time; one that is stuck makes room for another.

Work that takes longer than `patience` no longer counts as one of the few, so that four git processes that hang delay no
other work; only the number of all threads is bounded.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from coral.fleet import actions as do, events as on
from coral.supervisor.event_queue import EventQueue
from workspace.cancellation import CancelToken

WIDTH = 4  # how much work runs at a time, not counting what is stuck
MAX_THREADS = 24  # threads, those that are stuck included
PATIENCE = 5.0  # seconds; work that takes longer counts as stuck


class _Threads(ThreadPoolExecutor):
    """A pool that goes on with the threads it has if the system refuses to start another one.

    `ThreadPoolExecutor` then raises an error although the work is queued, and afterwards counts one thread too many as
    idle, so that it starts too few."""

    _unstarted = 0  # how many threads too many count as idle

    def _adjust_thread_count(self) -> None:
        """Start a thread for the work that was just queued, unless one is idle. RuntimeError if the pool has no thread
        and the system starts none."""
        while self._unstarted and self._idle_semaphore.acquire(blocking=False):
            self._unstarted -= 1
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
            self._unstarted += 1


class WorkerPool(Executor):
    def __init__(self, width: int = WIDTH, most: int = MAX_THREADS, patience: float = PATIENCE) -> None:
        self._width, self._most, self._patience = width, most, patience
        self._threads = _Threads(most, thread_name_prefix="coral")
        self._threads.submit(int)  # from now on there is a thread, however many processes agents start
        self._waiting: deque[tuple[Future[Any], CancelToken, Callable[[], Any]]] = deque()
        self._running: dict[Future[Any], tuple[CancelToken, float]] = {}
        self._lock = threading.RLock()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self.submit_cancellable(CancelToken(), function, *arguments, **named)

    def submit_cancellable(
        self, token: CancelToken, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Future[Any]:
        """Submit work that can be cancelled by its token: the processes that it runs are killed, and it starts no
        others."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, token, lambda: function(*arguments, **named)))
        self.advance()
        return future

    def advance(self) -> None:
        """Begin the waiting work that there is room for. Called when work is submitted and when it ends, and at each
        turn, because work that is stuck makes room without an event."""
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
        """Wait for the work that is left, at most `seconds`. After that, work that runs is cancelled, and work that
        waits never begins."""
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


class BackgroundActions:
    """Performs actions in worker threads. The events that an action leads to are put on the event queue."""

    def __init__(self, pool: WorkerPool, queue: EventQueue) -> None:
        self._pool = pool
        self._queue = queue
        self._tokens: dict[str, CancelToken] = {}
        self._lock = threading.Lock()

    def run_later(self, action: do.Action, work: Callable[[], Iterable[on.Event]], who: str = "") -> None:
        """Perform an action in a worker thread. `work` carries it out and yields its events; if it breaks off, its
        `Restored` events are put on the queue all the same. `who`: the key for `cancel`."""
        token, events = CancelToken(), list[on.Event]()
        if who:
            with self._lock:
                self._tokens[who] = token
        future = self._pool.submit_cancellable(token, lambda: events.extend(work()))
        future.add_done_callback(partial(self._over, action, who, token, events))

    def cancel(self, who: str) -> None:
        if token := self._tokens.get(who):
            token.cancel()

    def close(self, seconds: float) -> None:
        """Cancel all actions, and wait at most `seconds` for the other work of the threads."""
        for token in list(self._tokens.values()):
            token.cancel()
        self._pool.finish(seconds)

    def _over(
        self, action: do.Action, who: str, token: CancelToken, events: list[on.Event], future: Future[None]
    ) -> None:
        """Put the events of an action, or of its failure, on the queue. Called in the thread that performed it."""
        with self._lock:
            if self._tokens.get(who) is token:  # a later action of the same key may have begun
                del self._tokens[who]
        if (error := future.exception()) is not None:
            self._queue.put(*(event for event in events if isinstance(event, on.Restored)))
            self._queue.put_failure(action, error)
        else:
            self._queue.put(*events)
