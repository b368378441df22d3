"""Dataclasses to JSON and back, by their annotations. What does not fit is a ValueError, never a wrong memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TypeVar, Union, get_args, get_origin, get_type_hints


def encode(value: object) -> object:
    """Plain data for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def decode(kind: object, data: object, where: str = "memory") -> object:
    """A value of `kind` from plain data; fields that are missing keep their defaults, unknown ones are left out."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _one_of(get_args(kind), data, where)
    if isinstance(kind, type) and is_dataclass(kind):
        known = _hints(kind)
        items = _checked(dict, data, where)
        return kind(
            **{name: decode(known[name], item, f"{where}.{name}") for name, item in items.items() if name in known}
        )
    if origin is tuple:
        inner = get_args(kind)[0]
        return tuple(decode(inner, item, f"{where}[]") for item in _checked(list, data, where))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = get_args(kind)[1]
        return {str(key): decode(inner, item, f"{where}.{key}") for key, item in _checked(dict, data, where).items()}
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(kind, type) or not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{where}: {type(data).__name__} is not {kind}")
    return data


def _one_of(kinds: tuple[object, ...], data: object, where: str) -> object:
    if data is None and NoneType in kinds:
        return None
    return decode(next(kind for kind in kinds if kind is not NoneType), data, where)


T = TypeVar("T")


def _checked(kind: type[T], data: object, where: str) -> T:
    if not isinstance(data, kind):
        raise ValueError(f"{where}: {type(data).__name__} is not a {kind.__name__}")
    return data


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind)
