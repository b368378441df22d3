"""Reads and writes JSON by `_json`, the C code of CPython that the module json calls, without importing json.

The local process of a grade imports this: to import json would take it as long as all else that it does.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_json: Any = __import__("_json")  # mypy knows nothing of it
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Parser:
    strict, parse_float, parse_int, object_pairs_hook = True, float, int, None
    parse_constant = _CONSTANTS.__getitem__

    def __init__(self, object_hook: Callable[[dict[str, Any]], Any] | None) -> None:
        self.object_hook = object_hook


def loads(text: str, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Return what a JSON text stands for, as `json.loads` does. `object_hook`: makes the value of each object from its
    dict. Raises ValueError if the text is no JSON."""
    text = text.strip()
    try:
        value, end = _json.make_scanner(_Parser(object_hook))(text, 0)
    except StopIteration:
        raise ValueError("this is no JSON") from None
    if end != len(text):
        raise ValueError("this is JSON and more")
    return value


def dumps(value: object, default: Callable[[object], object] | None = None) -> str:
    """Return a value as JSON text, as `json.dumps` does. `default`: converts a value that JSON does not have; without
    it such a value raises TypeError."""
    encode = _json.make_encoder(
        {}, default or _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON")
