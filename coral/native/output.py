"""What the agent prints: one JSON object a line, each written whole, so that a reader never meets half a line.

Nothing is read back and nothing is buffered: whoever reads the output knows what happened up to the last moment.
"""

from __future__ import annotations

import json
import os

LONGEST = 3500  # bytes of a message; a line stays well below what the reader looks at
PROSE = 16_000  # bytes of an answer


class Output:
    """Lines on a file descriptor (standard output). A reader that is gone is no reason to stop."""

    def __init__(self, handle: int = 1) -> None:
        self.handle = handle

    def session(self, session: str) -> None:
        self._line({"type": "session", "session": session})

    def beat(self, phase: str, message: str, progress: float | None = None) -> None:
        """A sign of life: what is being done, and how much of it is done (0 to 1)."""
        self._line({"type": "beat", "phase": phase, "message": message[:LONGEST], "progress": progress})

    def text(self, text: str) -> None:
        """What the agent says, in prose."""
        self._line({"type": "text", "reply": text[:PROSE]})

    def error(self, message: str) -> None:
        self._line({"type": "error", "error": message[:LONGEST]})

    def end(self, reason: str) -> None:
        self._line({"type": "end", "ended": True, "message": reason[:LONGEST]})

    def _line(self, data: dict[str, object]) -> None:
        try:
            os.write(self.handle, json.dumps(data, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        except BrokenPipeError:
            return
