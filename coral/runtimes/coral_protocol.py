"""Reads what our own agent programs print: one JSON object a line, with any of the fields of `OutputEvent`.

Text that is no JSON is a message. Every field is cleaned and shortened here, because an agent may print anything.
"""

import difflib
import signal
import sys
from abc import abstractmethod
from collections.abc import Iterable

from attempts.fields import one_line
from coral.runtimes.exits import INTERRUPTED, UNKNOWN_SESSION, USAGE
from coral.runtimes.json_object import MESSAGE, JsonObject, parse
from coral.runtimes.model import (
    Command,
    Ending,
    LaunchSpec,
    LaunchSummary,
    OutputEvent,
    Retry,
    Runtime,
    Usage,
    new_session,
)

LONGEST = 65_536  # bytes of a line that are read
_START_UP_ERRORS = ("KeyboardInterrupt", "Fatal Python error: init")


class OwnProgram(Runtime):
    """The base of the runtimes whose program is our own and asks no model. `module`: the program."""

    uses_model = False
    account = ""
    module = ""

    def command(self, spec: LaunchSpec) -> Command:
        session = spec.session or new_session(spec)
        resumed = ("--resume",) if spec.session else ()
        begin = (sys.executable, "-P", "-m", self.module, "--session", session, *resumed, "--state", str(spec.state))
        return Command(argv=(*begin, *self.arguments(spec)), session=session)

    @abstractmethod
    def arguments(self, spec: LaunchSpec) -> tuple[str, ...]:
        """Return the arguments that this program takes beside the conversation and its state folder."""

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        text = line[:LONGEST].decode("utf-8", "replace").strip()
        if not text:
            return ()
        event = parse(text)
        return (OutputEvent(message=one_line(text, MESSAGE)) if event is None else output_event(event),)

    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        if summary.limit_until is not None:
            return Ending.LIMIT
        if code == UNKNOWN_SESSION:
            return Ending.UNKNOWN_SESSION
        if code == USAGE:
            return Ending.TERMINAL
        return Ending.INTERRUPTED if in_start_up(code, summary) else by_code(code)


def in_start_up(code: int, summary: LaunchSummary) -> bool:
    """Return whether a signal interrupted Python itself in its first milliseconds, before the program: the exit code is
    then 1."""
    return code == 1 and not summary.output and any(text in summary.stderr for text in _START_UP_ERRORS)


def output_event(event: JsonObject) -> OutputEvent:
    return OutputEvent(
        session=event.line("session", limit=100),
        phase=event.line("phase", limit=40),
        message=event.line("message"),
        progress=_number(event, "progress", most=1.0),
        reply=event.piece("reply"),
        limit_until=_number(event, "limit_until", most=1e11),
        ended=event.true("ended"),
        error=event.line("error"),
        usage=_usage(event.inner("usage")) if event.holds("usage") else None,
        edited=event.line("edited", limit=200),
        compacted=event.true("compacted"),
        retry=_retry(event.inner("retry")) if event.holds("retry") else None,
    )


def _retry(retry: JsonObject) -> Retry:
    attempt, seconds = int(_number(retry, "attempt", most=1e9) or 0), _number(retry, "seconds", most=1e9)
    return Retry(attempt=attempt, seconds=seconds, reason=retry.line("reason"))


def _usage(usage: JsonObject) -> Usage:
    read, cached, written = (int(_number(usage, name, most=1e12) or 0) for name in ("input", "cached", "output"))
    return Usage(input=read, cached=cached, output=written, cost=_number(usage, "cost", most=1e9))


def _number(event: JsonObject, name: str, most: float) -> float | None:
    """Return a number, raised to 0 or lowered to `most` if it lies outside; None if the field holds none."""
    value = event.raw(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return float(min(most, max(0.0, value)))  # compared before it is converted: float(10**400) would fail


def by_code(code: int) -> Ending:
    if code == 0:
        return Ending.CLEAN
    stopped = (INTERRUPTED, -signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGTERM)
    return Ending.INTERRUPTED if code in stopped else Ending.CRASHED


def unknown(options: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return a problem for each option that the runtime does not have."""
    names = tuple(known)
    problems = []
    for option in options:
        if option not in names:
            close = difflib.get_close_matches(option, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names) or 'none'}"
            problems.append(f"there is no option {option!r}; {hint}")
    return problems
