"""Prints what only an agent with a model does: calls of tools, what a step has used, and how the model fails."""

from coral.native.output import LONGEST_MESSAGE, Output


class LlmOutput(Output):
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
