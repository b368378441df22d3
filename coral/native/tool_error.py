"""The error of a tool: whoever made the call reads it, a brain or a model. Tools need no more of the situation."""


class ToolError(Exception):
    """A call failed. `transient`: the same call may succeed the next time."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
