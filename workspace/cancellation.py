"""What a piece of work has running, so that somebody else can end it: a git may hang for as long as it likes.

Rule: once it is cut, what runs is killed and nothing more is started, for that piece of work alone.
"""

from __future__ import annotations

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
    """Made by whoever may want to cut it; `around` is what the work is called in."""

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
        """From any thread. Whoever waits for what is killed learns that it was."""
        with self._lock:
            self.is_cancelled = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)

    @contextlib.contextmanager
    def starting(self) -> Iterator[set[Popen[bytes]]]:
        """Nobody cuts in between: what is started goes into the set."""
        with self._lock:
            yield self._running

    def let_go(self, process: Popen[bytes]) -> None:
        """It has been waited for."""
        with self._lock:
            self._running.discard(process)


def current_token() -> CancelToken:
    """That of the work which the caller is part of; one that nobody holds, where there is none."""
    return _current.get() or CancelToken()


_current: ContextVar[CancelToken | None] = ContextVar("leash", default=None)
