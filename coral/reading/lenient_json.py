"""Reads JSON files that may be missing, cut off or of another shape: a value that is absent or of the wrong type is
read as a default."""

from __future__ import annotations

import json
import math
from pathlib import Path

from attempts.fields import one_line
from attempts.files import open_plain

MAX_BYTES = 16_000_000


class LenientJson:
    """An object read from JSON. Each method returns the value of a key if it has the method's type, else None or
    something empty."""

    def __init__(self, data: object = None) -> None:
        self.data: dict[str, object] = data if isinstance(data, dict) else {}

    def __bool__(self) -> bool:
        return bool(self.data)

    def text(self, name: str, limit: int = 500) -> str:
        """Return the value on one line without control characters, cut to `limit` characters; empty if there is
        none."""
        value = self.data.get(name)
        return one_line(str(value), limit) if isinstance(value, str | int | float) else ""

    def number(self, name: str) -> float | None:
        value = self.data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if math.isfinite(found) else None

    def integer(self, name: str) -> int | None:
        value = self.data.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def inner(self, name: str) -> LenientJson:
        return LenientJson(self.data.get(name))

    def objects(self, name: str) -> list[LenientJson]:
        """Return the objects in a list, without its other items; empty if the value is no list."""
        return [LenientJson(item) for item in self._list(name) if isinstance(item, dict)]

    def texts(self, name: str) -> list[str]:
        return [one_line(item, 500) for item in self._list(name) if isinstance(item, str)]

    def integers(self, name: str) -> list[int]:
        return [item for item in self._list(name) if isinstance(item, int) and not isinstance(item, bool)]

    def _list(self, name: str) -> list[object]:
        value = self.data.get(name)
        return value if isinstance(value, list) else []


def read(path: Path) -> LenientJson:
    """Read the object in a file; an empty one if the file is missing or holds no object."""
    try:
        with open_plain(path) as file:
            return parse(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return LenientJson()


def parse(text: bytes) -> LenientJson:
    try:
        return LenientJson(json.loads(text))
    except (ValueError, RecursionError):
        return LenientJson()
