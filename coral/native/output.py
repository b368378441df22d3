"""Prints what the agent does: one JSON object a line, each written whole, so that a reader never meets half a line.

Nothing is buffered, so the output is complete up to the last moment, however the process ends.
"""

import json
import os

LONGEST_MESSAGE = 3500  # characters; the runtime does not read lines beyond a limit
LONGEST_ANSWER = 16_000


class Output:
    """Writes lines to a file descriptor (standard output). They are dropped when the reader is gone."""

    def __init__(self, handle: int = 1) -> None:
        self.handle = handle

    def session(self, session: str) -> None:
        self._line({"type": "session", "session": session})

    def beat(self, phase: str, message: str, progress: float | None = None) -> None:
        """Print what is being done, and how much of it is done (0 to 1)."""
        self._line({"type": "beat", "phase": phase, "message": message[:LONGEST_MESSAGE], "progress": progress})

    def text(self, text: str) -> None:
        self._line({"type": "text", "reply": text[:LONGEST_ANSWER]})

    def error(self, message: str) -> None:
        self._line({"type": "error", "error": message[:LONGEST_MESSAGE]})

    def tool(self, call: str, name: str, text: str, *, over: bool = False, failed: bool = False) -> None:
        """Print a tool call that begins, with its arguments, or that has ended, with its result."""
        data = {"id": call, "name": name, "text": text[:LONGEST_MESSAGE], "over": over, "failed": failed}
        self._line({"type": "tool", "phase": "thinking" if over else "tool", "message": name, "tool": data})

    def usage(self, **figures: float | None) -> None:
        """Print what a step of the model has used: tokens as input, cached and output, and cost in US dollars."""
        self._line({"type": "usage", "usage": {name: value for name, value in figures.items() if value is not None}})

    def retry(self, attempt: int, seconds: float, reason: str) -> None:
        data = {"attempt": attempt, "seconds": seconds, "reason": reason[:LONGEST_MESSAGE]}
        self._line({"type": "retry", "phase": "retrying", "retry": data})

    def compacted(self, message: str) -> None:
        self._line({"type": "compacted", "phase": "compacting", "message": message, "compacted": True})

    def model_failed(self, text: str, status: int, retry_after: float | None) -> None:
        """Print the model's last error, by which the runtime judges how this launch has ended."""
        data = {"text": text[:LONGEST_MESSAGE], "status": status, "retry_after": retry_after}
        self._line({"type": "failed", "failed": data})

    def end(self, reason: str) -> None:
        self._line({"type": "end", "ended": True, "message": reason[:LONGEST_MESSAGE]})

    def _line(self, data: dict[str, object]) -> None:
        try:
            os.write(self.handle, json.dumps(data, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        except BrokenPipeError:
            return
