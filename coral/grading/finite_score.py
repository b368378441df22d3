"""Defines a score. The process of every Python grader loads this module, so it imports next to nothing."""

import math
import numbers


def finite_score(value: object) -> float:
    """Return a score as a float. ValueError says what it is if it is not a finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        plain = value is None or isinstance(value, bool | str)
        raise ValueError(f"a score must be a number, got {repr(value)[:60] if plain else f'a {type(value).__name__}'}")
    try:
        score = float(value)
    except OverflowError:
        raise ValueError("a score must fit a 64-bit float, got an integer that is too large") from None
    if not math.isfinite(score):
        raise ValueError(f"a score must be finite, got {score}")
    return score
