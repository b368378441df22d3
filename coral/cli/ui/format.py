"""How numbers, times and foreign text look, in one place, so that every command says them alike.

What agents or candidates wrote never reaches a terminal raw: an escape sequence in a title could rewrite the screen.
"""

from __future__ import annotations

import time
from datetime import datetime

from attempts.fields import one_line, printable

NONE = "–"  # what a cell holds when there is nothing to say


def score(value: object) -> str:
    """A score as people compare it: ten significant digits, or a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NONE
    return f"{value:.10g}"


def delta(value: object, base: object) -> str:
    """How far `value` is from `base`, with its sign; empty when one of them is missing."""
    if not isinstance(value, int | float) or not isinstance(base, int | float):
        return ""
    return f"{value - base:+.6g}"


def span(seconds: object) -> str:
    """A length of time in at most two units: 4s, 12m, 3h 10m, 2d 4h."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds != seconds:
        return NONE
    left = max(0.0, min(float(seconds), 1e9))
    if left < 9.95:
        return f"{left:.1f}s".replace(".0s", "s")
    whole = round(left)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m" + (f" {whole % 60}s" if whole < 600 and whole % 60 else "")
    if whole < 86400:
        return f"{whole // 3600}h" + (f" {whole % 3600 // 60}m" if whole % 3600 >= 60 else "")
    return f"{whole // 86400}d" + (f" {whole % 86400 // 3600}h" if whole % 86400 >= 3600 else "")


def clock(seconds: float) -> str:
    """A time of the run's clock: 4:07, 1:04:07."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def age(stamp: object, now: float | None = None) -> float | None:
    """Seconds since an ISO-8601 time; None when it is none."""
    try:
        then = datetime.fromisoformat(str(stamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return (time.time() if now is None else now) - then


def ago(stamp: object, now: float | None = None) -> str:
    """When that was, seen from now: `just now`, `4m ago`."""
    seconds = age(stamp, now)
    if seconds is None:
        return NONE
    return "just now" if seconds < 1.5 else f"{coarse(seconds)} ago"


def coarse(seconds: float) -> str:
    """A length of time in its largest unit: 50s, 12m, 3h, 2d."""
    return span(int(seconds) if seconds < 60 else seconds // 60 * 60).partition(" ")[0]


def plural(count: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def clean(text: object) -> str:
    """Text of others without control characters; line ends and tabs stay."""
    return printable(str(text))


def line(text: object, limit: int = 500) -> str:
    """Text of others on one line, cut."""
    return one_line(str(text), limit)
