"""Lets one thread cancel the work of another: the git processes of the work are killed, and it cannot start others. A
git may hang for ever."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from subprocess import Popen
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class CancelToken:
    """Cancels the work that is called by `around`, and nothing else."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._running: set[Popen[bytes]] = set()
        self._lock = threading.Lock()

    def around(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        token = _current.set(self)
        try:
            return function(*arguments, **named)
        finally:
            _current.reset(token)

    def cancel(self) -> None:
        """Kill the processes that the work runs; callable from any thread. The work gets the error of a killed
        process."""
        with self._lock:
            self.is_cancelled = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def starting(self) -> Iterator[set[Popen[bytes]]]:
        """Hold the token while a process is started and added to the yielded set, so that no `cancel` can miss it."""
        with self._lock:
            yield self._running

    def remove(self, process: Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)


def current_token() -> CancelToken:
    """Return the token of the work that calls this; outside of such work, a new one that nobody will cancel."""
    return _current.get() or CancelToken()


_current: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)
