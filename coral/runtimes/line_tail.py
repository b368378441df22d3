"""Reads a file that a program is still writing: its new lines, without those that are too long; or its end."""

import os
from collections.abc import Iterator
from pathlib import Path

from attempts.files import open_plain, read_end

PIECE = 1 << 20  # bytes read at a time
LONGEST_LINE = 1 << 20
END_BYTES = 4000


class LineTail:
    """Reads the lines that were added to a file since the last read. Lines of more than LONGEST_LINE bytes are left
    out, and counted in `omitted`. `since`: the offset in bytes at which to begin; if it is not 0, what comes before the
    next newline is left out."""

    def __init__(self, path: Path, since: int = 0) -> None:
        self.omitted = 0
        self.place = since  # where in the file the last line that was read ends
        self._path = path
        self._offset = since
        self._part = b""
        self._skipping = since > 0

    def lines(self) -> Iterator[bytes]:
        if not self.has_more:
            return
        try:
            with open_plain(self._path) as file:
                file.seek(self._offset)
                piece = file.read(PIECE)
        except (FileNotFoundError, ValueError):  # nothing yet; or the agent put something else there
            return
        place = self._offset - len(self._part)
        self._offset += len(piece)
        *whole, self._part = (self._part + piece).split(b"\n")
        for line in whole:
            place += len(line) + 1
            if self._skipping:
                self._skipping = False
            else:
                self.place = place
                yield line
        if len(self._part) > LONGEST_LINE:
            self.omitted += not self._skipping
            self._part, self._skipping = b"", True

    def rest(self) -> Iterator[bytes]:
        """Yield the last line if it has no newline, once the program that wrote it has ended."""
        part, self._part = self._part, b""
        if part and not self._skipping:
            self.place = self._offset
            yield part

    @property
    def has_more(self) -> bool:
        try:
            return os.stat(self._path).st_size > self._offset  # noqa: PTH116 - once per agent and tick
        except OSError:
            return False


def end_of(path: Path) -> str:
    """Return the last END_BYTES of a file, as text; empty if it cannot be read."""
    return read_end(path, END_BYTES).decode("utf-8", "replace")
