"""Where an axis begins, what is written at it, and which points are drawn: for the terminal and for pictures."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

LEAST = 1 / 10  # share of a range below which the steps that lie in it cannot be told apart
T = TypeVar("T")


def first_shown(values: Sequence[float]) -> int:
    """The index of the first step that a curve's axis reaches to. Where hardly anything of the range is left after the
    widest step, it hides the later ones: then the axis begins after it, unless nothing rises after it."""
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


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, at most `most`, evenly spaced by 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or high - low == math.inf:
        return [low] if low == high else []
    unit = 10.0 ** math.floor(math.log10((high - low) / most)) if high - low > 1e-300 else 0.0
    if not unit or not math.isfinite(unit):
        return [low, high]
    step = next(unit * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (unit * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, min(last, first + most) + 1)]


def powers(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten from `low` to `high`, both above 0; every second or third where they are too many."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return [10.0**exponent for exponent in range(first, last + 1, every)]


def minutes(end: float, most: int = 6) -> list[float]:
    """Times from 0 to `end`, both in seconds, in steps that a clock has."""
    steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
    step: float = next((step for step in steps if end / step <= most), 0)
    if not step:
        step = 86400.0 * math.ceil(end / 86400 / most)
    return [step * count for count in range(int(end / step) + 1)]


def first_in_cells(items: Iterable[T], cell: Callable[[T], Hashable | None]) -> list[T]:
    """The first item of each cell; those without a cell (None) are all left out."""
    seen: set[Hashable] = set()
    kept = []
    for item in items:
        place = cell(item)
        if place is not None and place not in seen:
            seen.add(place)
            kept.append(item)
    return kept
