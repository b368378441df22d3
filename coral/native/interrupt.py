"""The answer to SIGINT, at any moment: do what must be done, then end the process. Nothing is unwound.

The handler runs between two steps of the interpreter, also within a save, a check or a wait, and only once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130


def on_interrupt(*actions: Callable[[], None]) -> None:
    """Replace what an interrupt does: the actions in order, then the end, even if one of them fails."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for action in actions:
                action()
        finally:
            os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, handler)
