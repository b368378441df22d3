"""A line of JSON that another program printed: every look gives a value of the type asked for, or its default.

Programs change what they print without a word; whatever is missing, of another type or huge is as if it was not there.
"""

import json
import math

from attempts.fields import one_line, printable

MESSAGE, REPLY = 300, 20_000  # characters
MAX_ITEMS = 1000


class Event:
    """An object of JSON. A look takes the path to a field: `event.text("message", "role")`."""

    def __init__(self, data: object) -> None:
        self._data: dict[str, object] = data if isinstance(data, dict) else {}

    def __bool__(self) -> bool:
        return bool(self._data)

    def raw(self, *path: str) -> object:
        value: object = self._data
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def text(self, *path: str) -> str:
        """Several lines, printable."""
        value = self.raw(*path)
        return printable(value[: 2 * REPLY]).strip()[:REPLY] if isinstance(value, str) else ""

    def line(self, *path: str, limit: int = MESSAGE) -> str:
        """One line, safe in a table."""
        value = self.raw(*path)
        return one_line(value, limit) if isinstance(value, str) else ""

    def number(self, *path: str) -> float | None:
        value = self.raw(*path)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
            return None
        return float(value)

    def count(self, *path: str) -> int:
        """A whole number from 0."""
        number = self.number(*path)
        return max(0, math.floor(number)) if number is not None else 0

    def true(self, *path: str) -> bool:
        return self.raw(*path) is True

    def inner(self, *path: str) -> "Event":
        return Event(self.raw(*path))

    def each(self, *path: str) -> list["Event"]:
        """The objects of a list; what is no object is left out."""
        value = self.raw(*path)
        items = value[:MAX_ITEMS] if isinstance(value, list) else []
        return [Event(item) for item in items if isinstance(item, dict)]

    def values(self, *path: str) -> list["Event"]:
        """The objects that an object holds by name."""
        value = self.raw(*path)
        return [Event(item) for item in value.values()] if isinstance(value, dict) else []


def parse(line: bytes) -> Event | None:
    """The object of a line; None for anything else."""
    try:
        data: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return Event(data) if isinstance(data, dict) else None
