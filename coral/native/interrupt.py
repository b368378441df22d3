"""The handler of SIGINT: runs a few actions, then ends the process.

No `finally` and no exit handler runs, so nothing half done is written at the end. The handler may run between any two
steps of the interpreter, also within a save, a check or a wait, and runs only once. It imports nothing but the standard
library, so that the process can install it before anything else.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType

EXIT_INTERRUPTED = 130


def on_interrupt(*actions: Callable[[], None]) -> None:
    """Set the handler of SIGINT: it runs the actions in order, then ends the process, even if one of them fails."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for action in actions:
                action()
        finally:
            os._exit(EXIT_INTERRUPTED)

    signal.signal(signal.SIGINT, handler)
