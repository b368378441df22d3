"""Prints what only an agent with a model does: calls of tools, what a step has used, and how the model fails."""

import time

from coral.native.output import LONGEST_MESSAGE, Output

ANSWER_SECONDS = 60.0  # between two beats of an answer that is coming


class LlmOutput(Output):
    def __init__(self, handle: int = 1) -> None:
        super().__init__(handle)
        self._answered_at = time.monotonic()

    def answering(self) -> None:
        """Print now and then that an answer is coming: an agent that prints nothing for long counts as stalled."""
        now = time.monotonic()
        if now >= self._answered_at + ANSWER_SECONDS:
            self._answered_at = now
            self.beat("thinking", "the model answers")

    def tool(self, call: str, name: str, text: str, *, over: bool = False, failed: bool = False) -> None:
        """Print a tool call that begins, with its arguments, or that has ended, with its result."""
        data = {"id": call, "name": name, "text": text[:LONGEST_MESSAGE], "over": over, "failed": failed}
        self.line({"type": "tool", "phase": "thinking" if over else "tool", "message": name, "tool": data})

    def usage(self, **figures: float | None) -> None:
        """Print what a step of the model has used: tokens as input, cached and output, and cost in US dollars."""
        self.line({"type": "usage", "usage": {name: value for name, value in figures.items() if value is not None}})

    def retry(self, attempt: int, seconds: float, reason: str) -> None:
        data = {"attempt": attempt, "seconds": seconds, "reason": reason[:LONGEST_MESSAGE]}
        self.line({"type": "retry", "phase": "retrying", "retry": data})

    def compacted(self, message: str) -> None:
        self.line({"type": "compacted", "phase": "compacting", "message": message, "compacted": True})

    def model_failed(self, text: str, status: int, retry_after: float | None) -> None:
        """Print the model's last error, by which the runtime judges how this launch has ended."""
        data = {"text": text[:LONGEST_MESSAGE], "status": status, "retry_after": retry_after}
        self.line({"type": "failed", "failed": data})
