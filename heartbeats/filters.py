"""The filters of the restricted dialect. A filter pays for what it reads with the fuel of one rendering."""

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

    def __init__(self) -> None:
        self.left = FUEL

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


def _part(item: object, attribute: str) -> object:
    return item[attribute] if attribute and isinstance(item, dict) else item


@pass_context
def loop(context: Context, value: object, weight: int) -> list[object]:
    """The items of a loop, paid for in advance: `weight` for each pass."""
    items = _sized(context, value)
    if isinstance(items, str):
        raise TypeError("a loop goes over a list, not over a text")
    cast(Fuel, context[FUEL_KEY]).spend(len(items) * weight)
    return items


def _of_items(function: Callable[[list[object] | str], object]) -> Callable[..., object]:
    @pass_context
    def filter_items(context: Context, value: object) -> object:
        return function(_sized(context, value))

    return filter_items


def _of_text(function: Callable[[str], str]) -> Callable[..., object]:
    @pass_context
    def filter_text(context: Context, value: object) -> str:
        return function(str(_sized(context, show(value))))

    return filter_text


def _at(index: int, name: str) -> Callable[..., object]:
    @pass_context
    def item_at(context: Context, value: object) -> object:
        items = _sized(context, value)
        return items[index] if items else context.environment.undefined(f"the {name} of nothing")

    return item_at


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


def _default(value: object, fallback: object = "", boolean: bool = False) -> object:
    missing = isinstance(value, Undefined) or value is None or (boolean and not value)
    return fallback if missing else value


def _round(value: object, digits: int = 0) -> float:
    if not isinstance(digits, int) or not 0 <= digits <= 15:
        raise ValueError("round takes from 0 to 15 digits")
    return round(number(value), digits)


FILTERS: dict[str, Callable[..., object]] = {
    "default": _default,
    "first": _at(0, "first"),
    "join": _join,
    "last": _at(-1, "last"),
    "length": _of_items(len),
    "list": _of_items(list),
    "lower": _of_text(str.lower),
    "round": _round,
    "sort": _sort,
    "title": _of_text(str.title),
    "trim": _of_text(str.strip),
    "upper": _of_text(str.upper),
}
