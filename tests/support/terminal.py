"""A terminal in which a command runs, in a session of its own that the terminal controls; and what is on its screen."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

SECONDS = 60.0  # what takes longer has failed, on any machine
_PIECE = re.compile(r"\x1b\[([?0-9;]*)([@-~])|\x1b(.)|([\r\n\b\x07])|([^\x1b\r\n\b\x07]+)", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[?0-9;]*)?\Z")


class Screen:
    """Lines and columns, as a terminal fills them: the few sequences that our views write, and no others. Letters are
    one column wide."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.is_other = False  # the screen that full-screen programs use
        self.has_cursor = True
        self._left = ""
        self._kept: tuple[list[list[str]], int, int] = (self._empty(), 0, 0)
        self._cells, self._row, self._column = self._empty(), 0, 0

    def write(self, text: str) -> None:
        text = self._left + text
        begun = _BEGUN.search(text)
        self._left = begun[0] if begun else ""
        for found in _PIECE.finditer(text[: len(text) - len(self._left)]):
            numbers, letter, _, control, plain = found.groups()
            if plain:
                self._put(plain)
            elif control:
                self._control(control)
            elif letter:
                self._obey(numbers, letter)

    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    def _empty(self) -> list[list[str]]:
        return [[" "] * self.width for _ in range(self.height)]

    def _put(self, text: str) -> None:
        for letter in text:
            if self._column == self.width:  # the line was full, and goes on below
                self._column = 0
                self._control("\n")
            self._cells[self._row][self._column] = letter
            self._column += 1

    def _control(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\b":
            self._column = max(0, self._column - 1)
        elif letter == "\n" and self._row < self.height - 1:
            self._row += 1
        elif letter == "\n":
            self._cells = [*self._cells[1:], [" "] * self.width]

    def _obey(self, numbers: str, letter: str) -> None:
        match numbers, letter:
            case "?1049", "h" | "l" if self.is_other != (letter == "h"):
                self.is_other = letter == "h"
                self._kept, (self._cells, self._row, self._column) = (
                    (self._cells, self._row, self._column),
                    (self._empty(), 0, 0) if self.is_other else self._kept,
                )
            case "?25", "h" | "l":
                self.has_cursor = letter == "h"
            case _, "H":
                places = [int(number or 1) - 1 for number in (*numbers.split(";"), "1")]
                self._row, self._column = places[0], places[1]
            case "" | "0", "K":
                self._cells[self._row][self._column :] = [" "] * (self.width - self._column)
            case "2", "J":
                self._cells = self._empty()


class Terminal:
    """Runs `words` in `folder`. The terminal is that from which the session is controlled: Ctrl-C and Ctrl-Z are
    signals to who is in its foreground. At the end of the block nothing of the session is left."""

    def __init__(self, words: Sequence[str], folder: Path, *, width: int = 100, height: int = 30, **env: str) -> None:
        self.screen = Screen(width, height)
        self._letters = codecs.getincrementaldecoder("utf-8")("replace")
        self._ours, self._theirs = pty.openpty()  # theirs stays open: whoever closes it last ends the terminal
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        # Whoever leads a session and opens a terminal gets it as its own.
        opens = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self._theirs)]
        given = {name: value for name, value in os.environ.items() if name != "CORAL_AGENT"}
        given |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
        self.process = subprocess.Popen([*opens, *words], cwd=folder, env=given | env, start_new_session=True)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        members = _members(self.process.pid)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, width: int, height: int) -> None:
        """Change the size of the terminal and empty the screen; programs find the size when they next look."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        is_other, self.screen = self.screen.is_other, Screen(width, height)
        self.screen.is_other = is_other

    def wait_for(self, seen: str | Callable[[Screen], object]) -> Screen:
        """Read until the screen has it."""
        deadline = time.monotonic() + SECONDS
        while not (seen in self.screen.text if isinstance(seen, str) else seen(self.screen)):
            assert time.monotonic() < deadline, f"{seen} did not come:\n{self.screen.text}"
            has_ended = self.process.poll() is not None
            assert self._read() or not has_ended, f"the end came before {seen}:\n{self.screen.text}"
        return self.screen

    def wait(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end:\n{self.screen.text}"
            self._read()
        while self._read():
            pass
        return self.process.returncode

    def reads_lines(self) -> bool:
        """Return whether the terminal is set as a shell leaves it to a command: whole lines, and what is typed is
        shown."""
        wanted = termios.ICANON | termios.ECHO
        return termios.tcgetattr(self._ours)[3] & wanted == wanted  # type: ignore[no-any-return]

    def _read(self) -> bool:
        """Read what has come; return whether anything came within a short time."""
        if not select.select([self._ours], [], [], 0.1)[0]:
            return False
        self.screen.write(self._letters.decode(os.read(self._ours, 65536)))
        return True


def _members(session: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                found.append(pid)
    return found
