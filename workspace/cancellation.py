"""Lets one thread cancel the work of another: its processes are killed, and it starts none. A git may hang for ever."""

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
        """Kill what the work runs; callable from any thread. The work gets the error of a killed process."""
        with self._lock:
            self.is_cancelled = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def starting(self) -> Iterator[set[Popen[bytes]]]:
        """Entered to start a process, which is added to the set: no `cancel` comes in between."""
        with self._lock:
            yield self._running

    def remove(self, process: Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)


def current_token() -> CancelToken:
    """The token of the work that calls this; a new one that nobody will cancel, where there is none."""
    return _current.get() or CancelToken()


_current: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)
