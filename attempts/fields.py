"""Reads plain data field by field: ValueError names the field that is missing, unknown or of the wrong type.

Types are checked exactly, because the data comes from files that anybody may have written: `True` is no number, `"3"`
is no integer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from enum import StrEnum

SUBMISSION_ID = re.compile(r"[0-9]{20}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(r"[\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# What code may raise when it is given plain data that somebody else wrote, as if Coral had written it.
BAD_DATA = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import TypeVar

    E = TypeVar("E", bound=StrEnum)


class Fields:
    """Reads the fields of a mapping. `known`: the only keys that it may have; a method's default makes a field
    optional."""

    def __init__(self, data: object, known: Collection[str]) -> None:
        if not isinstance(data, Mapping):
            raise ValueError(f"expected an object with fields, got {shown(data)}")
        for name in data:
            if name not in known:
                raise ValueError(f"{shown(name)}: there is no such field")
        self._data = data

    def get(self, name: str, default: object = None) -> object:
        return self._data.get(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._data.get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "text")
        return printable(value)

    def integer(self, name: str, default: int | None = None) -> int:
        value = self._data.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(name, "a whole number from 0")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number that is not negative, such as seconds."""
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
            raise self.wrong(name, "a number from 0")
        return float(value)

    def choice(self, name: str, kind: type[E]) -> E:
        value = self._data.get(name)
        if not isinstance(value, str) or value not in set(kind):
            raise self.wrong(name, "one of " + ", ".join(kind))
        return kind(value)

    def matching(self, name: str, pattern: re.Pattern[str], what: str) -> str:
        value = self._data.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.wrong(name, what)
        return value

    def wrong(self, name: str, wanted: str) -> ValueError:
        if name not in self._data:
            return ValueError(f"{name}: is missing")
        return ValueError(f"{name}: expected {wanted}, got {shown(self._data[name])}")


def shown(value: object) -> str:
    """Return a value as it is shown in a message: short, on one line, whatever its type."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "a huge integer"
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, str):
        return repr(one_line(value, 60))
    return f"a {type(value).__name__}"


def printable(text: str) -> str:
    """Return the text without control characters (tab and line feed stay) and without surrogates that UTF-8 cannot
    hold."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    return _CONTROL.sub("", whole)


def one_line(text: str, limit: int) -> str:
    """Return text that is safe in a table, a log line and a terminal: one line, no invisible characters, at most
    `limit` characters."""
    flat = " ".join(printable(_INVISIBLE.sub("", text[: 4 * limit])).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def json_safe(value: object) -> float | int | str | bool | None:
    """Return a metric's value as JSON can hold it: infinity, NaN and huge integers become texts."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else "a huge integer"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    return printable(str(value))
