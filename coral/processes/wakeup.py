"""The sleep of the loop: ended by a call of `wake`, or by the end of a watched process.

Waking carries no data. A wake-up that is missed costs only the time until the next poll.
"""

import contextlib
import os
import selectors

UNWATCHED_SECONDS = 0.2  # how often to poll where the system cannot tell when a process ends


class Wakeup:
    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reading, selectors.EVENT_READ, "")
        self._watched: dict[str, int] = {}
        self._unwatched: set[str] = set()

    def wake(self) -> None:
        """End the sleep. Safe in any thread and in signal handlers."""
        with contextlib.suppress(OSError):  # a full pipe wakes already; a closed one, even if just now, wakes nobody
            os.write(self._writing, b"\0")

    def watch(self, name: str, pid: int) -> None:
        """End the sleep when this process ends. The process must be alive, or not reaped yet. Replaces a process
        watched as `name`."""
        self.forget(name)
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self._unwatched.add(name)
            return
        self._watched[name] = handle
        self._selector.register(handle, selectors.EVENT_READ, name)

    def watches(self, name: str) -> bool:
        return name in self._watched

    def forget(self, name: str) -> None:
        self._unwatched.discard(name)
        handle = self._watched.pop(name, None)
        if handle is not None:
            self._selector.unregister(handle)
            os.close(handle)

    def wait(self, seconds: float) -> set[str]:
        """Sleep at most `seconds`. Returns the names of the watched processes that may have ended."""
        if self._unwatched:
            seconds = min(seconds, UNWATCHED_SECONDS)
        ended = set(self._unwatched)
        for key, _ in self._selector.select(max(seconds, 0.0)):
            if key.data:
                ended.add(key.data)
                self.forget(key.data)
            else:
                with contextlib.suppress(BlockingIOError):
                    while os.read(self._reading, 4096):
                        pass
        return ended

    def close(self) -> None:
        for name in list(self._watched):
            self.forget(name)
        self._selector.close()
        os.close(self._reading)
        # A thread that is late must not write into what has this number by then.
        writing, self._writing = self._writing, -1
        os.close(writing)
