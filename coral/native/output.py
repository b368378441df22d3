"""Prints what the agent does: one JSON object a line, each written whole, so that a reader never meets half a line.

Nothing is buffered, so the output is complete up to the last moment, however the process ends.
"""

import json
import os
from contextlib import suppress

LONGEST_MESSAGE = 3500  # characters; the runtime does not read lines beyond a limit
LONGEST_ANSWER = 16_000


class Output:
    """Writes lines to a file descriptor (standard output). They are dropped when the reader is gone."""

    def __init__(self, handle: int = 1) -> None:
        self.handle = handle

    def session(self, session: str) -> None:
        self.line({"type": "session", "session": session})

    def beat(self, phase: str, message: str, progress: float | None = None) -> None:
        """Print what is being done, and how much of it is done (0 to 1)."""
        self.line({"type": "beat", "phase": phase, "message": message[:LONGEST_MESSAGE], "progress": progress})

    def text(self, text: str) -> None:
        self.line({"type": "text", "reply": text[:LONGEST_ANSWER]})

    def error(self, message: str) -> None:
        self.line({"type": "error", "error": message[:LONGEST_MESSAGE]})

    def end(self, reason: str) -> None:
        self.line({"type": "end", "ended": True, "message": reason[:LONGEST_MESSAGE]})

    def line(self, data: dict[str, object]) -> None:
        with suppress(BrokenPipeError):
            os.write(self.handle, json.dumps(data, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
