"""Scores and lists of attempts as text: scores that are compared get as many digits as the comparison needs."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

FEWEST_DECIMALS, MOST_DECIMALS = 4, 10


def decimals(*values: float | None) -> int:
    """Return how many decimals show the smallest difference between these values."""
    known = sorted({value for value in values if value is not None})
    gaps = [b - a for a, b in pairwise(known)]
    return min(MOST_DECIMALS, max(FEWEST_DECIMALS, 2 - floor(log10(min(gaps))))) if gaps else FEWEST_DECIMALS


def score_text(value: float | None, digits: int = 6) -> str:
    if value is None:
        return "no score"
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.6g}"


def score_change(before: float | None, after: float | None) -> str:
    """Write two scores as `2.5421 -> 2.5567`."""
    digits = decimals(before, after)
    return f"{score_text(before, digits)} -> {score_text(after, digits)}"


def difference(before: float | None, after: float | None) -> str:
    """Write the difference of two scores as `+0.0146`; empty if one of them is None."""
    if before is None or after is None:
        return ""
    digits = decimals(before, after)
    change = round(after - before, digits) + 0.0  # never "-0.0000"
    return f"{change:+.{digits}f}" if abs(change) < 1e6 else f"{change:+.3g}"


def attempt_list(numbers: Sequence[int]) -> str:
    """Write numbers of attempts as `#3, #5 and #7`."""
    named = [f"#{number}" for number in numbers]
    return " and ".join((", ".join(named[:-1]), named[-1])) if len(named) > 1 else "".join(named)
