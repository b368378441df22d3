"""The signals that ask for an end (SIGINT, SIGTERM, SIGHUP) meet this process only where it can be ended in order.

From `held` on they wait. Where nothing would be left half-made they are let through: there the first of them raises
KeyboardInterrupt, and those after it wait again, so that nothing interrupts the cleaning up.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSignals:
    """`came`: the first signal that waits; 0 while there is none."""

    def __init__(self) -> None:
        self.came = 0
        self._open = False
        self._take: Callable[[int], None] | None = None

    def handle(self, number: int, _: FrameType | None) -> None:
        if self._take is not None:
            self._take(number)
        elif self._open:
            self._open = False
            raise KeyboardInterrupt
        else:
            self.came = self.came or number

    def check(self) -> None:
        """KeyboardInterrupt if a signal waits."""
        if self.came:
            self.came = 0
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """A signal that waits, or comes meanwhile, raises KeyboardInterrupt in here."""
        if self._open or self._take is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            self._open = True
            self.check()
            yield
        finally:
            self._open = False

    @contextlib.contextmanager
    def handled_by(self, take: Callable[[int], None]) -> Iterator[None]:
        """A signal that waits, or comes meanwhile, is given to `take`."""
        self._take = take
        try:
            if self.came:
                came, self.came = self.came, 0
                take(came)
            yield
        finally:
            self._take = None


_starter: list[HeldSignals] = []


@contextlib.contextmanager
def hold() -> Iterator[HeldSignals]:
    """Hold the signals back; within another `held`, that one's gate. All get handlers: an ignored one would be
    inherited. But whoever ignores that the terminal closes, as `nohup` has it, goes on doing so."""
    if _starter or threading.current_thread() is not threading.main_thread():
        yield _starter[0] if _starter else HeldSignals()
        return
    gate = HeldSignals()
    _starter.append(gate)
    stays = signal.SIGHUP if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else None
    before = {number: signal.signal(number, gate.handle) for number in ENDS if number is not stays}
    try:
        yield gate
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _starter.clear()


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Of whatever holds them back; where nothing does, nothing is to be done."""
    with _starter[0].let_through() if _starter else contextlib.nullcontext():
        yield
