"""Interrupts that arrive only where a program waits: what is quick is finished first, and nothing is half done."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """SIGINT came while a step waited; no handler of errors catches it. `over`: whether the step counts as done."""

    def __init__(self, over: bool = True) -> None:
        super().__init__()
        self.over = over


class Interrupts:
    """Takes SIGINT over. `pending`: one came where the program did not wait, and is still to be answered."""

    def __init__(self) -> None:
        self.pending = False
        self._waiting = False
        signal.signal(signal.SIGINT, self._on_signal)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, SIGINT raises Interrupted at once."""
        try:
            self._waiting = True  # before the look at `pending`: what comes between the two is raised by the handler
            if self.pending:
                raise Interrupted
            yield
        finally:
            self._waiting = False

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.pending = True
        if self._waiting:
            self._waiting = False
            raise Interrupted
