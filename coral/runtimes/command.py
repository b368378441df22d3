"""Runs any program: two command lines and three patterns from the task say how to start, resume and read it.

The program gets the prompt on its standard input, and as a file. Without `resume` every launch begins a new
conversation.
"""

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from attempts.fields import one_line, printable
from coral.runtimes import coral_protocol, template
from coral.runtimes.json_object import MESSAGE, REPLY
from coral.runtimes.model import Command, Ending, LaunchSpec, LaunchSummary, OutputEvent, Runtime, new_session
from workspace.layout import leads_outside

LONGEST = 20_000  # bytes of a line that the patterns read: the time of a pattern can grow faster than the line
LIMIT = 900.0  # seconds to wait if a limit does not say when it ends
LONGEST_LIMIT = 30 * 86_400.0
CANNOT_RUN = (126, 127)  # exit codes of a shell that cannot start the program
# Each program has its own words for a lost conversation; all of them name it in a sentence with a negation.
_LOST_SESSION = re.compile(
    r"(?i)(\b(no|not|unknown|invalid|missing|expired|cannot)\b.*\b(session|conversation|thread)\b"
    r"|\b(session|conversation|thread)\b.*\b(not|unknown|invalid|missing|expired)\b)"
)
_GROUPS = {"session_pattern": ("session",), "reply_pattern": ("reply",), "limit_pattern": ("until", "seconds")}
_OPTIONS = ("start", "resume", *_GROUPS, "instruction_file")


class AnyProgram(Runtime):
    name = "command"

    def __init__(self, options: Mapping[str, object]) -> None:
        super().__init__(options)
        self.instruction_file = str(options.get("instruction_file", "AGENTS.md"))
        self.resumes = bool(options.get("resume"))
        self.uses_model = any("{model}" in str(options.get(name)) for name in ("start", "resume"))

    @property
    def account(self) -> str:
        return template.account(self.name, self.options.get("start"))

    def check(self) -> list[str]:
        problems = coral_protocol.unknown(self.options, _OPTIONS)
        for option in ("start", "resume") if self.resumes else ("start",):
            problems += template.problems(option, self.options.get(option, ""))
        for option, groups in _GROUPS.items():
            problems += _pattern_problems(option, self.options.get(option, ""), groups)
        path = self.options.get("instruction_file", "AGENTS.md")
        if not isinstance(path, str) or not path or leads_outside(path):
            problems.append(f"instruction_file must be a path inside the workspace; got {path!r}")
        return problems or self._session_problems()

    def command(self, spec: LaunchSpec) -> Command:
        """Return how a launch is started. ValueError for options that `check` refuses."""
        resumed = spec.session is not None and self.resumes
        session = spec.session if resumed and spec.session else new_session(spec)
        words = template.words(self.options.get("resume" if resumed else "start"))
        known = resumed or "session_pattern" not in self._patterns
        return Command(argv=template.fill(words, template.values(spec, session)), session=session if known else "")

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        text = printable(line[:LONGEST].decode("utf-8", "replace")).strip()
        if not text:
            return ()
        session, reply = self._found("session_pattern", text), self._found("reply_pattern", text)
        replied = (reply["reply"] or "") if reply else "" if "reply_pattern" in self._patterns else text
        event = OutputEvent(
            session=one_line((session["session"] or "") if session else "", 200),
            message=one_line(text, MESSAGE),
            reply=replied[:REPLY],
            limit_until=self._limit_until(text),
        )
        return (event,)

    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        if summary.limit_until is not None or self._found("limit_pattern", summary.stderr):
            return Ending.LIMIT
        if code in CANNOT_RUN:
            return Ending.TERMINAL
        ending = coral_protocol.by_code(code)
        lost = ending is Ending.CRASHED and not summary.output and _LOST_SESSION.search(summary.stderr)
        return Ending.UNKNOWN_SESSION if lost and self.resumes else ending

    @cached_property
    def _patterns(self) -> Mapping[str, re.Pattern[str]]:
        """The patterns that the task gives, by their options."""
        given = {option: self.options.get(option) for option in _GROUPS}
        return {option: re.compile(text) for option, text in given.items() if isinstance(text, str) and text}

    def _found(self, option: str, text: str) -> re.Match[str] | None:
        pattern = self._patterns.get(option)
        return pattern.search(text) if pattern else None

    def _limit_until(self, text: str) -> float | None:
        found = self._found("limit_pattern", text)
        if found is None:
            return None
        now, groups = time.time(), found.groupdict()
        until = _moment(groups.get("until") or "") or now + (_seconds(groups.get("seconds") or "") or LIMIT)
        return min(max(until, now), now + LONGEST_LIMIT)

    def _session_problems(self) -> list[str]:
        """Return a problem if the program is to be resumed and the id of its conversation cannot be known."""
        if not self.resumes or not template.has_placeholder(template.words(self.options["resume"]), "session"):
            return []
        if "session_pattern" in self._patterns or template.has_placeholder(
            template.words(self.options["start"]), "session"
        ):
            return []
        return ["resume needs {session}: give it to the program in start, or say by session_pattern what it prints"]


def _pattern_problems(option: str, text: object, groups: tuple[str, ...]) -> list[str]:
    if not isinstance(text, str):
        return [f"{option} must be a pattern; got {text!r}"]
    try:
        named = set(re.compile(text).groupindex)
    except re.error as error:
        return [f"{option} is no regular expression: {error}"]
    if text and option != "limit_pattern" and not named & set(groups):
        return [f"{option} needs a group named {groups[0]}: (?P<{groups[0]}>...)"]
    return [f"{option} has a group {name!r}; it knows {', '.join(groups)}" for name in sorted(named - set(groups))]


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(text: str) -> float | None:
    """Return seconds since the epoch, from seconds or milliseconds, or from ISO 8601 (by default local time); None for
    any other text."""
    number = _seconds(text)
    if number is not None:
        return number / 1000 if number > 1e11 else number
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
