"""Reads JSON objects that another program printed: each method returns the type that was asked for, or its default.

Programs change what they print without notice; a field that is missing, of another type or huge counts as absent.
"""

import json
import math

from attempts.fields import one_line, printable

MESSAGE, REPLY = 300, 20_000  # characters
MAX_ITEMS = 1000


class JsonObject:
    """An object of JSON. Methods take the path of a field: `event.text("message", "role")`."""

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
        """Return a text of several lines, printable and at most REPLY characters long."""
        value = self.raw(*path)
        return printable(value[: 2 * REPLY]).strip()[:REPLY] if isinstance(value, str) else ""

    def piece(self, *path: str) -> str:
        """Return a piece of a reply, with the blanks at its ends, which separate words of the whole reply."""
        value = self.raw(*path)
        return printable(value[:REPLY]) if isinstance(value, str) else ""

    def line(self, *path: str, limit: int = MESSAGE) -> str:
        """Return a text as one line, safe in a table."""
        value = self.raw(*path)
        return one_line(value, limit) if isinstance(value, str) else ""

    def number(self, *path: str) -> float | None:
        value = self.raw(*path)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
            return None
        return float(value)

    def amount(self, *path: str) -> float | None:
        """Return a number from 0 on, such as a price: programs print -1 for one that they do not know."""
        number = self.number(*path)
        return number if number is not None and number >= 0 else None

    def count(self, *path: str) -> int:
        """Return a whole number from 0."""
        number = self.number(*path)
        return max(0, math.floor(number)) if number is not None else 0

    def true(self, *path: str) -> bool:
        return self.raw(*path) is True

    def holds(self, *path: str) -> bool:
        """Return whether there is an object, which may be an empty one."""
        return isinstance(self.raw(*path), dict)

    def inner(self, *path: str) -> "JsonObject":
        return JsonObject(self.raw(*path))

    def items(self, *path: str) -> list["JsonObject"]:
        """Return the objects in a list; other items are left out."""
        value = self.raw(*path)
        items = value[:MAX_ITEMS] if isinstance(value, list) else []
        return [JsonObject(item) for item in items if isinstance(item, dict)]

    def values(self, *path: str) -> list["JsonObject"]:
        """Return the values of an object, as objects."""
        value = self.raw(*path)
        return [JsonObject(item) for item in value.values()] if isinstance(value, dict) else []


def parse(line: bytes | str) -> JsonObject | None:
    """Return the object of a line; None if the line holds anything else."""
    try:
        data: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return JsonObject(data) if isinstance(data, dict) else None
