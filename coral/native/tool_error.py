"""The error of a tool, which the brain or the model that made the call reads."""


class ToolError(Exception):
    """A call failed. `transient`: the same call may succeed the next time."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
