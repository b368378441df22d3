"""How a tool fails: the error becomes a signal of its own, so that the brain reads it and puts it right."""


class ToolError(Exception):
    """A call that did not work. `again`: it may work the next time."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class MemoryFault(Exception):  # noqa: N818
    """Memory contradicts the world: it is rolled back to a snapshot before."""
