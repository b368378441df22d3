"""What the operator was told already: what goes wrong at every poll is one alert.

Rule: of those only the last are known, since a reason may name a moment, and then is never the same.
"""

MOST = 256


class SeenAlerts:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = {}  # the last one said comes last

    def __len__(self) -> int:
        return len(self._known)

    def is_new(self, item: str, reason: str) -> bool:
        """Whether this is to be told; from now on it was."""
        known = (item, reason) in self._known
        self._known.pop((item, reason), None)
        self._known[item, reason] = None
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return not known
