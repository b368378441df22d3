"""Uses the whole terminal for a view: the alternate screen, without a cursor, with each key read at once. The terminal
is restored when the view ends, and before Ctrl-Z stops this process.

In the background nothing is drawn or read, because that would stop the process; `fg` brings the view back. Keys are
read only if standard input is a terminal.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from coral.cli.ui.live_keys import Key, KeyDecoder

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?2004h"  # the alternate screen, no cursor, marks around pasted text
LEAVE = "\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l"
REST_OF_KEY = 0.05  # seconds within which the rest of a sequence comes, even over a network; otherwise it was Esc
PATIENCE = 1.0  # seconds for which Ctrl-Z waits while a view draws: a terminal that hangs must not block it
AT_ONCE = 4096  # bytes
_screens: list[TerminalScreen] = []  # the screen that is shown now, if any


@contextlib.contextmanager
def full_screen(out: Console) -> Iterator[TerminalScreen]:
    """Give a screen on the terminal of standard output, and restore the terminal however the view ends."""
    screen = TerminalScreen(out)
    with suspendable():
        try:
            _screens.append(screen)
            screen.show()
            yield screen
        finally:
            with screen.lock:
                _screens.remove(screen)
                screen.leave()


class TerminalScreen:
    """The terminal while a view fills it. `lock`: held while it is written to, because Ctrl-Z is handled in the main
    thread and the view may be in another."""

    def __init__(self, out: Console) -> None:
        self.lock = threading.RLock()
        self._out = out
        self._file = sys.stdout.fileno()
        self._decoder = KeyDecoder()
        self._is_shown = False
        self._drawn = ""
        self._before: tuple[int, list[Any]] | None = None  # the descriptor of the keyboard, and its modes before

    def draw(self, view: RenderableType) -> None:
        """Fill the screen with a view."""
        from rich.screen import Screen

        with self._out.capture() as captured:
            self._out.print(Screen(view), end="")
        with self.lock:
            self._drawn = captured.get()
            self.show()

    def show(self) -> None:
        """Show what was drawn last; nothing while another program has the terminal."""
        with self.lock:
            if not _in_foreground(self._file):
                return
            self._set_modes()
            entering, self._is_shown = ("" if self._is_shown else ENTER), True
            self._write(f"{entering}\x1b[H{self._drawn}")

    def leave(self) -> None:
        """Restore the terminal as it was. Nothing is done in the background, where another program may have changed
        it."""
        import termios

        with self.lock:
            if not self._is_shown or not _in_foreground(self._file):
                return
            self._is_shown = False
            if self._before is not None:
                with contextlib.suppress(termios.error):  # the terminal is gone
                    termios.tcsetattr(self._before[0], termios.TCSANOW, self._before[1])
            self._before = None
            self._write(LEAVE)

    @property
    def has_keyboard(self) -> bool:
        return self._before is not None

    def pressed(self, seconds: float) -> list[Key]:
        """Wait at most `seconds` for keys; return the first that come."""
        keys = self._read(seconds)
        if not keys and self._decoder.is_waiting:
            keys = self._read(REST_OF_KEY) or self._decoder.give_up()
        return keys

    def _read(self, seconds: float) -> list[Key]:
        if self._before is None:
            time.sleep(seconds)
            return []
        file, _ = self._before
        if not select.select([file], [], [], seconds)[0]:
            return []
        with contextlib.suppress(OSError):
            if _in_foreground(file) and (data := os.read(file, AT_ONCE)):
                return self._decoder.feed(data)
        time.sleep(seconds)  # the other end was closed: select would return at once
        return []

    def _set_modes(self) -> None:
        """Set the terminal to give each key at once. This is done again if another program, such as a shell, has
        changed it since."""
        import termios
        import tty

        file = _keyboard()
        if file is None:
            return
        with contextlib.suppress(termios.error):
            now = termios.tcgetattr(file)
            if self._before is None:
                self._before = file, now
            if now[3] & (termios.ICANON | termios.ECHO):
                tty.setcbreak(file, termios.TCSANOW)

    def _write(self, text: str) -> None:
        """Write to the descriptor: the handler of Ctrl-Z must not use a Python file that is just being written to."""
        data = text.encode(self._out.encoding, "replace")
        with contextlib.suppress(OSError):  # the terminal is gone
            while data:
                data = data[os.write(self._file, data) :]


@contextlib.contextmanager
def suspendable() -> Iterator[None]:
    """Let Ctrl-Z leave the screen before it stops the process, and show it again afterwards. This has no effect outside
    of the main thread, or if Ctrl-Z is handled by somebody else already."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTSTP, _suspend)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


def _suspend(number: int, _: FrameType | None) -> None:
    """Handle Ctrl-Z. The lock is held while the process is stopped, so that a view in another thread cannot draw just
    before."""
    with contextlib.ExitStack() as stack:
        screen = _screens[-1] if _screens else None
        if screen is not None and screen.lock.acquire(timeout=PATIENCE):
            stack.callback(screen.lock.release)
            screen.leave()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # the process stops here, until it is continued
        signal.signal(number, _suspend)
    if screen in _screens:
        screen.show()


def _in_foreground(file: int) -> bool:
    """Return whether this process may use the terminal; also if the file is no terminal that controls this process."""
    try:
        return os.tcgetpgrp(file) == os.getpgrp()
    except OSError:
        return True


def _keyboard() -> int | None:
    """Return the descriptor of standard input if it is the terminal that controls this process, else None."""
    try:
        file = sys.stdin.fileno()
        return file if os.isatty(file) and os.tcgetpgrp(file) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None
