"""Figures in words: scores that are compared are written with as many digits as the comparison needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

from attempts.record import Direction
from coral.native.search.numeric.space import Space

SHOWN = 4  # changed values that a note names
LEAST, MOST = 4, 10  # decimals
WORTH = 1e-9  # relative: smaller gains are rounding, earn no credit and prove nothing


def decimals(*values: float | None) -> int:
    """How many decimals show the smallest difference between these values."""
    known = sorted({value for value in values if value is not None})
    gaps = [b - a for a, b in pairwise(known)]
    return min(MOST, max(LEAST, 2 - floor(log10(min(gaps))))) if gaps else LEAST


def score(value: float | None, digits: int = 6) -> str:
    if value is None:
        return "no score"
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.6g}"


def both(before: float | None, after: float | None) -> str:
    """`2.5421 -> 2.5567`."""
    digits = decimals(before, after)
    return f"{score(before, digits)} -> {score(after, digits)}"


def difference(before: float | None, after: float | None) -> str:
    """`+0.0146`; empty where one of them is missing."""
    if before is None or after is None:
        return ""
    return f"{after - before:+.{decimals(before, after)}f}" if abs(after - before) < 1e6 else f"{after - before:+.3g}"


def gain(before: float | None, after: float | None, direction: Direction) -> float:
    """By how much `after` is better; 0 where that cannot be said."""
    if before is None or after is None:
        return 0.0
    return after - before if direction is Direction.MAXIMIZE else before - after


def is_worth(gained: float, before: float | None) -> bool:
    """Whether a gain is more than the rounding of the last digits."""
    return gained > WORTH * max(1.0, abs(before or 0.0))


def numbers(found: Sequence[int]) -> str:
    """`#3, #5 and #7`."""
    named = [f"#{number}" for number in found]
    return " and ".join((", ".join(named[:-1]), named[-1])) if len(named) > 1 else "".join(named)


def change(space: Space, before: Sequence[float], after: Sequence[float]) -> str:
    """What differs between two points: how many values, and the largest differences by name."""
    scales = space.scales([before])
    moved = [k for k in range(len(space)) if before[k] != after[k]]
    if not moved:
        return "nothing differs"
    order = sorted(moved, key=lambda k: -abs(after[k] - before[k]) / scales[k])
    shown = [f"{space.names[k]} {_value(space, k, before[k])} -> {_value(space, k, after[k])}" for k in order[:SHOWN]]
    rest = f", and {len(moved) - SHOWN} less" if len(moved) > SHOWN else ""
    return f"{len(moved)} of {len(space)} values differ; most of all {'; '.join(shown)}{rest}"


def _value(space: Space, variable: int, value: float) -> str:
    spot = space.spots[variable]
    return spot.words[round(value)] if spot.words else f"{value:.5g}"
