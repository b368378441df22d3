"""Encodes frozen dataclasses as JSON and decodes them, each object tagged with the name of its class.

A field at its default is left out, and a missing field takes its default: that keeps lines short. The classes that a
tag may mean are a closed list, taken from type annotations; nothing is imported by name.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

TAG = "is"
SCALARS = frozenset({str, int, float, bool, type(None)})
Encoder = Callable[[Any], Any]
Decoder = Callable[[Any], Any]


def encode(value: Any) -> Any:
    """Return the value as plain data that `json.dumps` takes."""
    kind: Any = type(value)
    return _encoder(kind)(value)


def encode_changes(before: Any, after: Any) -> dict[str, Any]:
    """Return the fields in which two records of one class differ, with their values in `after`; also values that are
    defaults."""
    kind: Any = type(after)
    plain: dict[str, Any] = {}
    for name, _ in _fields(kind):
        held = getattr(after, name)
        was = getattr(before, name)
        if held is not was and held != was:
            plain[name] = encode(held)
    return plain


def decode(kind: Any, plain: object) -> Any:
    """Return the object of type `kind` that `encode` made `plain` from. ValueError says what does not fit."""
    return _decoder(kind)(plain)


@cache
def _encoder(kind: Any) -> Encoder:
    if is_dataclass(kind):
        return _record_encoder(kind)
    if issubclass(kind, Enum):
        return lambda member: member.value
    if issubclass(kind, tuple | list):
        return lambda items: [encode(item) for item in items]
    if issubclass(kind, Mapping):
        return lambda mapping: {str(key): encode(item) for key, item in mapping.items()}
    return lambda value: value


def _record_encoder(kind: Any) -> Encoder:
    tag, named = kind.__name__, _fields(kind)

    def encode_record(value: object) -> dict[str, Any]:
        plain: dict[str, Any] = {TAG: tag}
        for name, default in named:
            held = getattr(value, name)
            if held is not default and held != default:
                plain[name] = held if type(held) in SCALARS else encode(held)
        return plain

    return encode_record


@cache
def _fields(kind: Any) -> tuple[tuple[str, object], ...]:
    """Return each field's name and default. Computed once for a class: a busy supervisor encodes thousands of records a
    second."""
    return tuple((field.name, _default(field)) for field in fields(kind))


@cache
def _decoder(kind: Any) -> Decoder:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind))
    if origin is tuple:
        item = _decoder(get_args(kind)[0])
        return lambda plain: tuple(item(part) for part in plain)
    if origin is not None and issubclass(origin, Mapping):
        _, held = get_args(kind)
        value = _decoder(held)
        return lambda plain: {key: value(part) for key, part in plain.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is float:
        return float
    return lambda plain: plain


def _record(kind: type) -> Decoder:
    hints = get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in fields(kind)}

    def decode_record(plain: Any) -> Any:
        if not isinstance(plain, dict) or plain.get(TAG) != kind.__name__:
            raise ValueError(f"expected a {kind.__name__}, got {str(plain)[:80]}")
        try:
            return kind(**{name: decoders[name](part) for name, part in plain.items() if name != TAG})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a {kind.__name__} of this version: {error}") from None

    return decode_record


def _union(kinds: tuple[Any, ...]) -> Decoder:
    records: dict[str, Any] = {kind.__name__: kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)}
    others = [kind for kind in kinds if kind is not type(None) and kind not in records.values()]

    def decode_union(plain: Any) -> Any:
        if plain is None:
            return None
        if records and isinstance(plain, dict) and plain.get(TAG) in records:
            return _decoder(records[plain[TAG]])(plain)
        if len(others) == 1:
            return _decoder(others[0])(plain)
        if others:
            return plain
        raise ValueError(f"expected one of {', '.join(records)}, got {str(plain)[:80]}")

    return decode_union


def _default(field: "Field[Any]") -> object:
    factory: Any = field.default_factory
    return field.default if factory is MISSING else factory()
