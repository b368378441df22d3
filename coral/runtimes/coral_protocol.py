"""Reads what our own agent programs print: one JSON object a line, with any of the fields of `OutputEvent`.

Text that is no JSON is a message. Every field is cleaned and shortened here, because an agent may print anything.
"""

import difflib
import json
import signal
from collections.abc import Iterable, Mapping

from attempts.fields import one_line, printable
from coral.runtimes.exits import INTERRUPTED, UNKNOWN_SESSION, USAGE
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent, Retry, Usage

LONGEST = 65_536  # bytes of a line that are read
MESSAGE, REPLY = 300, 20_000  # characters


def read(line: bytes) -> tuple[OutputEvent, ...]:
    """What a line says."""
    text = line[:LONGEST].decode("utf-8", "replace").strip()
    if not text:
        return ()
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    return (_event(data) if isinstance(data, dict) else OutputEvent(message=one_line(text, MESSAGE)),)


def _event(data: Mapping[str, object]) -> OutputEvent:
    return OutputEvent(
        session=_line(data.get("session"), 100),
        phase=_line(data.get("phase"), 40),
        message=_line(data.get("message"), MESSAGE),
        progress=_number(data.get("progress"), 0.0, 1.0),
        reply=_text(data.get("reply")),
        limit_until=_number(data.get("limit_until"), 0.0, 1e11),
        ended=data.get("ended") is True,
        error=_line(data.get("error"), MESSAGE),
        usage=_usage(data.get("usage")),
        edited=_line(data.get("edited"), 200),
        compacted=data.get("compacted") is True,
        retry=_retry(data.get("retry")),
    )


def _retry(data: object) -> Retry | None:
    if not isinstance(data, dict):
        return None
    attempt = int(_number(data.get("attempt"), 0.0, 1e9) or 0)
    return Retry(
        attempt=attempt, seconds=_number(data.get("seconds"), 0.0, 1e9), reason=_line(data.get("reason"), MESSAGE)
    )


def _usage(data: object) -> Usage | None:
    """The usage of a step."""
    if not isinstance(data, dict):
        return None
    read, cached, written = (int(_number(data.get(name), 0.0, 1e12) or 0) for name in ("input", "cached", "output"))
    return Usage(input=read, cached=cached, output=written, cost=_number(data.get("cost"), 0.0, 1e9))


def _line(value: object, limit: int) -> str:
    return one_line(value, limit) if isinstance(value, str) else ""


def _text(value: object) -> str:
    return printable(value)[:REPLY] if isinstance(value, str) else ""


def _number(value: object, low: float, high: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return float(min(high, max(low, value)))  # compared before it is converted: float(10**400) would fail


def judge(code: int, summary: LaunchSummary) -> Ending:
    """What the exit of one of our own programs means."""
    if summary.limit_until is not None:
        return Ending.LIMIT
    if code == UNKNOWN_SESSION:
        return Ending.UNKNOWN_SESSION
    if code == USAGE:
        return Ending.TERMINAL
    # A signal in the first milliseconds interrupts Python itself, before the program: the exit code is 1.
    newborn = code == 1 and not summary.output and "KeyboardInterrupt" in summary.stderr
    return Ending.INTERRUPTED if newborn else by_code(code)


def by_code(code: int) -> Ending:
    """What an exit code means for any program."""
    if code == 0:
        return Ending.CLEAN
    stopped = (INTERRUPTED, -signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGTERM)
    return Ending.INTERRUPTED if code in stopped else Ending.CRASHED


def unknown(options: Iterable[str], known: Iterable[str]) -> list[str]:
    """One problem for each option that the runtime does not have."""
    names = tuple(known)
    problems = []
    for option in options:
        if option not in names:
            close = difflib.get_close_matches(option, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names) or 'none'}"
            problems.append(f"there is no option {option!r}; {hint}")
    return problems
