"""Delays the signals that ask this process to end (SIGINT, SIGTERM, SIGHUP) until it can end in order.

While `hold` is active they wait. Where nothing would be left half-made, `let_through` lets the first of them raise
KeyboardInterrupt; later ones wait again, so that nothing interrupts the cleaning up.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSignals:
    """The signals that wait. `came`: the number of the first one; 0 while there is none."""

    def __init__(self) -> None:
        self.came = 0
        self._open = False
        self._handler: Callable[[int], None] | None = None

    def receive(self, number: int, _: FrameType | None) -> None:
        if self._handler is not None:
            self._handler(number)
        elif self._open:
            self._open = False
            raise KeyboardInterrupt
        else:
            self.came = self.came or number

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal waits."""
        if self.came:
            self.came = 0
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """Let a signal that waits, or comes meanwhile, raise KeyboardInterrupt inside this context."""
        if self._open or self._handler is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            self._open = True
            self.check()
            yield
        finally:
            self._open = False

    @contextlib.contextmanager
    def handled_by(self, handler: Callable[[int], None]) -> Iterator[None]:
        """Give each signal that waits, or comes meanwhile, to `handler`."""
        self._handler = handler
        try:
            if self.came:
                came, self.came = self.came, 0
                handler(came)
            yield
        finally:
            self._handler = None


_holder: list[HeldSignals] = []


@contextlib.contextmanager
def hold() -> Iterator[HeldSignals]:
    """Hold the signals back; an inner `hold` shares the outer one. An ignored SIGINT or SIGTERM gets a handler too,
    because children would inherit it as ignored; an ignored SIGHUP stays ignored, as `nohup` wants it."""
    if _holder or threading.current_thread() is not threading.main_thread():
        yield _holder[0] if _holder else HeldSignals()
        return
    held = HeldSignals()
    _holder.append(held)
    stays = signal.SIGHUP if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else None
    before = {number: signal.signal(number, held.receive) for number in ENDS if number is not stays}
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _holder.clear()


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Apply `HeldSignals.let_through` of the active `hold`; without one, no effect."""
    with _holder[0].let_through() if _holder else contextlib.nullcontext():
        yield
