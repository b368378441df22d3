"""Gives templates plain data alone: texts, numbers, lists and dicts of a bounded size.

A dot in a template reads a key of a dict, never an attribute or method, so that no template can reach the interpreter.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping

from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from attempts.fields import one_line, printable

OUTPUT_BYTES = 100_000
LONGEST_TEXT = 20_000
MAX_ITEMS = 1_000
MAX_CHARACTERS = 400_000
DEEPEST = 8

_LOOP_WORDS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth"})


class PlainEnvironment(ImmutableSandboxedEnvironment):
    def getattr(self, obj: object, attribute: str) -> object:
        if isinstance(obj, LoopContext) and attribute in _LOOP_WORDS:
            return getattr(obj, attribute)
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return self._nothing(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        if isinstance(obj, Mapping) and isinstance(argument, str):
            return self.getattr(obj, argument)
        if isinstance(obj, list | tuple | str) and isinstance(argument, int | slice):
            with contextlib.suppress(IndexError):
                return obj[argument]
        return self._nothing(obj, argument)

    def _nothing(self, obj: object, name: object) -> object:
        """Return an undefined value whose message lists the names that there are, and shows nothing of the object
        itself."""
        if isinstance(obj, Undefined):
            return obj
        keys = ", ".join(str(key) for key in list(obj)[:20]) if isinstance(obj, Mapping) else "nothing"
        return self.undefined(f"there is no {one_line(str(name), 40)} in it; there is: {one_line(keys, 200)}")


class Copy:
    """Copies a template's context as plain data, and cuts what is too long for a prompt."""

    def __init__(self) -> None:
        self._left = MAX_CHARACTERS

    def of(self, value: object, depth: int = 0) -> object:
        self._left -= 8
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**63 else "a huge integer"
        if isinstance(value, Mapping) and depth < DEEPEST:
            pairs = list(value.items())[:MAX_ITEMS]
            return {self._text(str(key)): self.of(item, depth + 1) for key, item in pairs if self._left > 0}
        if isinstance(value, list | tuple) and depth < DEEPEST:
            return [self.of(item, depth + 1) for item in value[:MAX_ITEMS] if self._left > 0]
        return self._text(str(value))

    def _text(self, text: str) -> str:
        capacity = max(0, min(LONGEST_TEXT, self._left))
        cut = printable(text[:capacity]) + (" ... (cut)" if len(text) > capacity else "")
        self._left -= len(cut)
        return cut


def show(value: object) -> str:
    """Return the text for a value in a prompt: floats with ten digits, structures as JSON, at most as long as a prompt
    may be."""
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple | dict):
        return joined(json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value), "")
    if isinstance(value, int | Undefined):
        return str(value)
    raise TypeError("this cannot be printed")


def joined(parts: Iterator[str], separator: str) -> str:
    """Join parts until the length is reached that a whole prompt may have."""
    pieces: list[str] = []
    length = 0
    for part in parts:
        pieces.append(part)
        length += len(part) + len(separator)
        if length > OUTPUT_BYTES:
            break
    return separator.join(pieces)


def number(value: object) -> float:
    """Return a number for arithmetic. TypeError for anything else, because texts and lists could grow by it without
    end."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("arithmetic is for numbers")
    if not -1e300 < value < 1e300:
        raise ValueError("a number is too large")
    return value
