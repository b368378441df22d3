"""JSON without the module json: importing that takes the local process of a grade as long as all the rest. Both use the
same code of CPython, `_json`.
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
    """Parse JSON, as `json.loads`. Raises ValueError."""
    text = text.strip()
    try:
        value, end = _json.make_scanner(_Parser(object_hook))(text, 0)
    except StopIteration:
        raise ValueError("this is no JSON") from None
    if end != len(text):
        raise ValueError("this is JSON and more")
    return value


def dumps(value: object, default: Callable[[object], object] | None = None) -> str:
    """Make JSON, as `json.dumps`. Raises TypeError for what `default` does not convert."""
    encode = _json.make_encoder(
        {}, default or _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is no JSON")
