"""The user's mistakes: each error has a message that says what cannot be done, and a hint that says what to do."""


class CoralError(Exception):
    """A mistake that the user can mend. The message says "cannot X: Y"; `hint` says what to do next, or is empty.

    The packages beside this one import nothing of it, so each has a base class of the same shape for its own errors:
    `StoreError`, `HeartbeatError`, `WorkspaceError`. `hint_of` knows them all.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def hint_of(error: BaseException) -> str | None:
    """The hint of a user's mistake, whichever package raised it; None for an error that is ours or the machine's."""
    hint = getattr(error, "hint", None)
    return hint if isinstance(hint, str) else None
