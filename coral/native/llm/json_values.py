"""Reads JSON that a model or its server wrote: a value of another type than expected counts as absent."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from coral.native.llm.request import Fault, ModelError

LONGEST_NUMBER = 1e15
LONGEST_NAME = 64  # characters


def parse_object(data: str) -> Mapping[str, Any]:
    """Return the object of an event. ModelError if it is not one: the answer may then not be whole."""
    try:
        event: object = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(Fault.TRANSIENT, f"the answer holds what is not JSON: {data[:80]!r}") from None
    if not isinstance(event, Mapping):
        raise ModelError(Fault.TRANSIENT, f"the answer holds what is no object: {data[:80]!r}")
    return event


def as_object(arguments: str) -> Mapping[str, Any]:
    """Return arguments as an object that can be sent: servers refuse a conversation in which the arguments of a call
    are anything else, or hold a number such as 1e999, which JSON cannot express once it is read."""
    value = read_object(arguments or "{}")
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    return {"unreadable": arguments} if value is None else value


def read_object(text: str) -> Mapping[str, Any] | None:
    """Return the object that a text holds; None if it holds anything else."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def object_of(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def call_name(name: str) -> str:
    """Return the name of a call in characters that servers take: they refuse a conversation with any other."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:LONGEST_NAME] or "_"


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def number_of(value: object) -> float | None:
    """Return a number from 0 on; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LONGEST_NUMBER:
        return None
    return float(value)


def count_of(value: object) -> int:
    return math.floor(number_of(value) or 0)
