"""The filters of the restricted dialect. Each pays for what it goes through, from the fuel of one rendering."""

from collections.abc import Callable
from typing import cast

from jinja2 import TemplateRuntimeError, pass_context
from jinja2.runtime import Context, Undefined

from heartbeats.plain import joined, number, show

FUEL = 100_000
# A key that no template can spell.
FUEL_KEY = " fuel"


class OutOfFuel(TemplateRuntimeError):  # noqa: N818
    """The template would have run for too long."""


class Fuel:
    """What one rendering may spend, in visited nodes."""

    def __init__(self, amount: int = FUEL) -> None:
        self.left = amount

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise OutOfFuel("it loops too long")


def _sized(context: Context, value: object) -> list[object] | str:
    """A text or the items of a collection, paid for."""
    if isinstance(value, Undefined):
        list(value)
    fuel = cast(Fuel, context[FUEL_KEY])
    if isinstance(value, str):
        fuel.spend(1 + len(value) // 64)
        return value
    if not isinstance(value, list | tuple | dict):
        raise TypeError("a filter for lists and texts was given something else")
    fuel.spend(1 + len(value))
    return list(value)


def _worded(context: Context, value: object) -> str:
    return str(_sized(context, show(value)))


def _part(item: object, attribute: str) -> object:
    return item[attribute] if attribute and isinstance(item, dict) else item


@pass_context
def loop(context: Context, value: object, weight: int) -> list[object]:
    """What a loop goes over, paid for in advance: `weight` for each pass."""
    items = _sized(context, value)
    if isinstance(items, str):
        raise TypeError("a loop goes over a list, not over a text")
    cast(Fuel, context[FUEL_KEY]).spend(len(items) * weight)
    return items


@pass_context
def _length(context: Context, value: object) -> int:
    return len(_sized(context, value))


@pass_context
def _first(context: Context, value: object) -> object:
    items = _sized(context, value)
    return items[0] if items else context.environment.undefined("the first of nothing")


@pass_context
def _last(context: Context, value: object) -> object:
    items = _sized(context, value)
    return items[-1] if items else context.environment.undefined("the last of nothing")


@pass_context
def _join(context: Context, value: object, separator: str = "", attribute: str = "") -> str:
    parts = (show(_part(item, attribute)) for item in _sized(context, value))
    return joined(parts, str(separator))


@pass_context
def _sort(context: Context, value: object, reverse: bool = False, attribute: str = "") -> list[object]:
    items = list(_sized(context, value))
    cast(Fuel, context[FUEL_KEY]).spend(10 * len(items))
    key = cast("Callable[[object], float]", lambda item: _part(item, attribute))
    return sorted(items, key=key, reverse=bool(reverse))


@pass_context
def _list(context: Context, value: object) -> list[object]:
    return list(_sized(context, value))


@pass_context
def _upper(context: Context, value: object) -> str:
    return _worded(context, value).upper()


@pass_context
def _lower(context: Context, value: object) -> str:
    return _worded(context, value).lower()


@pass_context
def _title(context: Context, value: object) -> str:
    return _worded(context, value).title()


@pass_context
def _trim(context: Context, value: object) -> str:
    return _worded(context, value).strip()


def _default(value: object, fallback: object = "", boolean: bool = False) -> object:
    missing = isinstance(value, Undefined) or value is None or (boolean and not value)
    return fallback if missing else value


def _round(value: object, digits: int = 0) -> float:
    if not isinstance(digits, int) or not 0 <= digits <= 15:
        raise ValueError("round takes from 0 to 15 digits")
    return round(number(value), digits)


FILTERS: dict[str, Callable[..., object]] = {
    "default": _default,
    "first": _first,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _list,
    "lower": _lower,
    "round": _round,
    "sort": _sort,
    "title": _title,
    "trim": _trim,
    "upper": _upper,
}
