"""Keys that are pressed while a live view is shown; the terminal is put back as it was.

Only where standard input is a terminal and this process is in its foreground: a background process that asks for input
would be stopped. Ctrl-C and Ctrl-Z work as ever.
"""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator

Pressed = Callable[[float], str]


@contextlib.contextmanager
def keys() -> Iterator[Pressed]:
    """Gives a function that waits up to so many seconds for a key, and returns what was pressed meanwhile."""
    file = _terminal()
    if file is None:
        yield _nothing
        return
    import termios
    import tty

    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        yield lambda seconds: _read(file, seconds)
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(file, termios.TCSADRAIN, before)


def _nothing(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _terminal() -> int | None:
    try:
        file = sys.stdin.fileno()
        return file if os.isatty(file) and os.tcgetpgrp(file) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None


def _read(file: int, seconds: float) -> str:
    ready, _, _ = select.select([file], [], [], seconds)
    if not ready:
        return ""
    with contextlib.suppress(OSError):
        if pressed := os.read(file, 64):
            return pressed.decode("utf-8", "replace")
    time.sleep(seconds)  # the other end was closed: it would be ready for ever
    return ""
