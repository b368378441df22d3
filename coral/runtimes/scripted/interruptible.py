"""Delivers SIGINT only while a program waits: whatever is quick is finished first, and nothing is left half done."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """SIGINT came while a step waited. `over`: whether the step counts as done. A BaseException, so that no handler of
    errors catches it."""

    def __init__(self, over: bool = True) -> None:
        super().__init__()
        self.over = over


class Interrupts:
    """Handles SIGINT. `pending`: one came while the program did not wait, and is not answered yet."""

    def __init__(self) -> None:
        self.pending = False
        self._waiting = False
        signal.signal(signal.SIGINT, self._on_signal)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, SIGINT raises Interrupted at once; a pending one does on entry."""
        try:
            self._waiting = True  # before `pending` is read: the handler raises what comes between the two
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
