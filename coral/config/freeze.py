"""The copy of a task that a run keeps: every key with its value, so that new defaults cannot change an old run.

Its own YAML writer guarantees that the copy is read back exactly: general writers fold some texts and change some
control characters.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coral.config.model import TaskFile

ORIGIN = "origin"
_HEAD = "# The task as this run was started, with its overrides and defaults. `origin` is the file it came from.\n"
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_TEXT = frozenset({"true", "false", "null"})


def frozen(origin: Path, task: TaskFile) -> str:
    """The task as YAML, which `load_frozen` reads back to the same values."""
    return _HEAD + write({ORIGIN: str(origin), **task.model_dump()})


def write(data: Mapping[str, object]) -> str:
    """Plain data as YAML, which `document.read` reads back to the same data."""
    return "".join(f"{line}\n" for line in _lines(data, 0))


def _lines(value: Mapping[str, object] | Sequence[object], depth: int) -> Iterator[str]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for key, inner in pairs:
        lead = "  " * depth + ("-" if key is None else f"{_key(key)}:")
        if isinstance(inner, Mapping | list | tuple) and inner:
            yield lead
            yield from _lines(inner, depth + 1)
        elif isinstance(inner, str) and _fits_a_block(inner):
            yield f"{lead} |2{'' if inner.endswith(chr(10)) else '-'}"
            yield from ("  " * (depth + 1) + line if line else "" for line in inner.removesuffix("\n").split("\n"))
        else:
            yield f"{lead} {_scalar(inner)}"


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT else quoted(key)


def _fits_a_block(text: str) -> bool:
    """Whether it has several lines of printable characters; the last may end in one newline."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and bool(lines[-1].strip()) and all(line.isprintable() for line in lines)


def _scalar(value: object) -> str:
    """As in JSON, which YAML 1.2 reads as well; JSON has no words for what is no finite number."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def quoted(text: str) -> str:
    """Any text as a YAML scalar."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
