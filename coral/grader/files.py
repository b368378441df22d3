"""Reads a file of the candidate as data: a plain file of bounded size, in which every number is finite."""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

from coral.types import Fail

MOST_BYTES = 1_000_000


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a regular file of at most `most` bytes of UTF-8. A link is not followed; a pipe or a device is
    not waited for. Raises Fail, which is the candidate's fault, with the file's name and what is wrong."""
    try:
        return _content(path, most).decode("utf-8")
    except (OSError, ValueError) as error:
        raise Fail(f"cannot read {path.name}: {_text_of(error)}") from error


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Return the value of a JSON file, read as by `read_text`. Every number is a finite float, whole ones too. A name
    that stands twice in one object is refused: two readers could see two values. Raises Fail as `read_text` does."""
    text = read_text(path, most)
    try:
        return json.loads(
            text, parse_int=_finite, parse_float=_finite, parse_constant=_no_number, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:
        raise Fail(f"cannot read {path.name}: {error}") from error


def _content(path: Path, most: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes")
    return data


def _text_of(error: Exception) -> str:
    """Return the words of an error without the path, which is that of a checkout and tells an agent nothing."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text[:40]} is not a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
