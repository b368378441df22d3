"""Chooses where an axis begins, the numbers written at it and the points drawn, for charts in the terminal and in
pictures."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

MARKS = 6  # on an axis
LEAST = 1 / 10  # steps within a smaller share of the axis cannot be told apart
T = TypeVar("T")


def first_shown(values: Sequence[float]) -> int:
    """Return the index of the value at which the axis of a rising curve begins: 0, or later if the first values would
    hide the others. While less than LEAST of the range lies after the widest step, the axis begins after that step,
    unless the curve is flat from there on."""
    start = 0
    while len(values) - start >= 3:
        steps = [
            abs(after / 4 - before / 4) for before, after in zip(values[start:], values[start + 1 :], strict=False)
        ]
        whole = abs(values[-1] / 4 - values[start] / 4)
        widest = max(range(len(steps)), key=steps.__getitem__)
        rest = values[start + widest + 1 :]
        left = abs(values[-1] / 4 - rest[0] / 4)
        if left >= LEAST * whole or min(rest) == max(rest):
            break
        start += widest + 1
    return start


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, at most MARKS, evenly spaced by 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or high - low == math.inf:
        return [low] if low == high else []
    unit = 10.0 ** math.floor(math.log10((high - low) / MARKS)) if high - low > 1e-300 else 0.0
    if not unit or not math.isfinite(unit):
        return [low, high]
    step = next(unit * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (unit * factor) <= MARKS)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, min(last, first + MARKS) + 1)]


def powers(low: float, high: float) -> list[float]:
    """Return the powers of ten from `low` to `high`, both above 0; only every second or third if there are more than
    MARKS."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / MARKS))
    return [10.0**exponent for exponent in range(first, last + 1, every)]


def minutes(end: float, most: int = MARKS) -> list[float]:
    """Return times from 0 to `end`, both in seconds, evenly spaced by a round number of seconds, minutes, hours or
    days; about `most` of them."""
    steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
    step: float = next((step for step in steps if end / step <= most), 0)
    if not step:
        step = 86400.0 * math.ceil(end / 86400 / most)
    return [step * count for count in range(int(end / step) + 1)]


def first_in_cells(items: Iterable[T], cell: Callable[[T], Hashable | None]) -> list[T]:
    """Return the first item of each cell. `cell`: the cell of an item; items whose cell is None are left out."""
    seen: set[Hashable] = set()
    kept = []
    for item in items:
        place = cell(item)
        if place is not None and place not in seen:
            seen.add(place)
            kept.append(item)
    return kept
