"""One class for a user's mistake: it prints as two lines, what cannot be done and what to do; all else is our bug."""


class CoralError(Exception):
    """A mistake the user can mend. `message` says "cannot X: Y"; `hint` says what to do next, or is empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
