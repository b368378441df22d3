"""Formats scores, durations, tokens, money and foreign text, for every screen and every prompt.

This module imports next to nothing, since `coral eval` imports it. Text of agents or candidates must be printed through
`clean` or `line` only: an escape sequence in a title could rewrite the screen.
"""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime

from attempts.fields import one_line, printable

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

NONE = "–"  # for a missing value
AT_LEAST = "at least "
MAX_NAMED = 4  # names in one sentence; of the others only the count
LAST_MOMENT = 253_402_300_799.0  # in seconds since the epoch: the end of the year 9999
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _number(value: object) -> float | None:
    """Return the value if it is a number, neither a bool nor nan; else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value == value else None


def score(value: object) -> str:
    """Format a score with up to ten significant digits; a dash if it is no number."""
    return NONE if isinstance(value, bool) or not isinstance(value, int | float) else f"{value + 0.0:.10g}"  # no -0


def scores(values: Sequence[object]) -> list[str]:
    """Format scores that are shown below each other with the same number of significant digits: at least five, and as
    many as are needed to show whole numbers in full and to tell apart what differs in nine digits. A dash for what is
    no number."""
    numbers = [_number(value) for value in values]
    given = [number for number in numbers if number is not None]
    different = len({f"{number:.9g}" for number in given})
    digits = next(count for count in range(5, 10) if len({f"{number:.{count}g}" for number in given}) == different)
    digits = max([digits, *(len(f"{abs(number):.0f}") for number in given if abs(number) < 1e10)])
    return [NONE if number is None else f"{number + 0.0:.{digits}g}" for number in numbers]


def delta(value: object, base: object) -> str:
    """Format the difference `value` - `base` with its sign, limited to the largest finite number; empty if one of them
    is missing."""
    if not isinstance(value, int | float) or not isinstance(base, int | float):
        return ""
    largest = sys.float_info.max
    return f"{min(max(value - base, -largest), largest) + 0.0:+.6g}"


def metric(value: object) -> str:
    """Format the value of a metric, which a grader gives beside the score."""
    return score(value) if isinstance(value, float) else line(value)


def duration(seconds: object, units: int = 2) -> str:
    """Format a length of time in its largest `units` units: `0.3 s`, `45 s`, `9 min 30 s`, `12 min`, `3 h 10 min`, `2 d
    4 h`. From ten seconds on it is rounded down, so that what is left of a duration never reads as the whole of it."""
    value = _number(seconds)
    if value is None:
        return NONE
    left = max(0.0, min(value, 1e9))
    whole = int(left)
    if left < 10 and units > 1:
        return f"{round(left, 3):.2g} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        parts = [(whole // 60, "min"), (whole % 60 if whole < 600 else 0, "s")]
    elif whole < 86400:
        parts = [(whole // 3600, "h"), (whole % 3600 // 60, "min")]
    else:
        parts = [(whole // 86400, "d"), (whole % 86400 // 3600, "h")]
    return " ".join(f"{count} {unit}" for count, unit in parts[:units] if count)


def run_clock(seconds: float) -> str:
    """Format a time of the run's clock: `4:07`, `1:04:07`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def moment(seconds: float) -> str:
    """Format a time in seconds since the epoch. A time that no calendar has, which a program may print, becomes the
    last one that can be shown."""
    return f"{datetime.fromtimestamp(max(min(LAST_MOMENT, seconds), 0.0), UTC):%Y-%m-%d %H:%M} UTC"


def age(stamp: object, now: float | None = None) -> float | None:
    """Return the seconds since an ISO-8601 time; None if `stamp` is none. `now`: seconds since the epoch, by default
    the present."""
    try:
        then = datetime.fromisoformat(str(stamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return (time.time() if now is None else now) - then


def ago(stamp: object, now: float | None = None) -> str:
    """Format how long ago an ISO-8601 time was: `just now`, `4 min ago`."""
    seconds = age(stamp, now)
    if seconds is None:
        return NONE
    return "just now" if seconds < 1.5 else f"{duration(seconds, units=1)} ago"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 attempt`, `2 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tokens(count: object) -> str:
    """Format a number of tokens: `812`, `12.3k`, `4.56M`."""
    value = _number(count)
    if value is None or not 0 <= value < 1e15:
        return "0"
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 999_950 else f"{value / 1e6:.2f}M"


def money(dollars: object) -> str:
    """Format US dollars: `$12.34`; with two significant digits below ten cents; empty if the amount is unknown."""
    value = _number(dollars)
    if value is None or not 0 <= value < 1e12:
        return ""
    return f"${value:,.2f}" if value == 0 or value >= 0.095 else f"${value:.2g}"


def usage(figures: Mapping[str, object]) -> str:
    """Format what one answer of a model used: `12.3k in, 4.56M from cache, 812 out, $0.12`. A cost of 0 is left out:
    programs report it for models whose price they do not know. So are tokens where a cost alone is reported."""
    cost = money(figures.get("cost") or None)
    if cost and not any(figures.get(part) for part in ("input", "cached", "output")):
        return cost
    cached = f"{tokens(figures['cached'])} from cache" if figures.get("cached") else ""
    parts = [f"{tokens(figures.get('input'))} in", cached, f"{tokens(figures.get('output'))} out"]
    return ", ".join(part for part in (*parts, cost) if part)


def some_of(names: Sequence[str]) -> str:
    """Join names for a sentence: `a, b and c`. Of more than MAX_NAMED, count the rest: `a, b, c, d and 3 more`."""
    if len(names) > MAX_NAMED:
        return f"{', '.join(names[:MAX_NAMED])} and {len(names) - MAX_NAMED} more"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def spending(spent: Mapping[str, object], partly: Container[str] = ()) -> str:
    """Format what was spent: `12.3k tokens, at least $0.12`; without what is zero tokens or unknown money. `partly`:
    `tokens` or `money`, if not all of them is known."""
    used = f"{tokens(spent['tokens'])} tokens" if spent.get("tokens") else ""
    parts = {"tokens": used, "money": money(spent.get("money"))}
    return ", ".join(f"{AT_LEAST if key in partly else ''}{text}" for key, text in parts.items() if text)


def clean(text: object) -> str:
    """Return foreign text without control characters; line ends and tabs stay."""
    return printable(str(text))


def source(text: object) -> str:
    """Return foreign text to be judged, such as a change, as `clean` does, with characters that alter the order in
    which others are shown as escapes (`\\u202e`): with them one text is made to look like another."""
    return _TURNS.sub(lambda match: f"\\u{ord(match[0]):04x}", clean(text))


def line(text: object, limit: int = 500) -> str:
    """Return foreign text on one line without control characters, cut to `limit` characters."""
    return one_line(str(text), limit)
