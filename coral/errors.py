"""The error for the user's mistakes: its message says what cannot be done, and its hint what to do instead."""


class CoralError(Exception):
    """A mistake that the user can mend. The message says "cannot X: Y"; `hint` says what to do next, or is empty.

    The packages beside this one import nothing of it, so each has a base class of the same shape for its own errors:
    `StoreError`, `HeartbeatError`, `WorkspaceError`. `hint_of` knows them all.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def hint_of(error: BaseException) -> str | None:
    """Return the hint of a user's mistake, whichever package raised it; None for an error that is a bug or the
    machine's fault."""
    hint = getattr(error, "hint", None)
    return hint if isinstance(hint, str) else None
