"""The base of runtimes whose program prints a JSON object a line and says how its turn ended."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from attempts.fields import one_line
from attempts.files import read_end
from coral.runtimes import coral_protocol, limits
from coral.runtimes.json_object import MESSAGE, JsonObject, parse
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent, Runtime

_LOG_END = 1 << 20  # bytes of a log that are read, from its end
WHOLE_LOG = 256 << 20  # bytes of a log that are read where all of it is wanted
ENTRIES = 20_000  # of a log that are parsed, in 0.2 s: more than the answers of a conversation
# What the HTTP status of an answer means: these statuses, whatever the text of the answer says, ...
DECISIVE = {402: Ending.TERMINAL, 429: Ending.LIMIT}
BY_STATUS = {401: Ending.TERMINAL, 403: Ending.DENIED}  # ... these only if no pattern matches the text


class Reader(Runtime):
    """The base of such runtimes. `interrupt_codes`: exit codes that only SIGINT causes. `lost_session`: texts, in lower
    case, by which the program says that it does not know a conversation."""

    lost_session: tuple[str, ...] = ()
    interrupt_codes: tuple[int, ...] = ()
    now: Callable[[], float] = staticmethod(time.time)

    def events(self, event: JsonObject) -> Iterator[OutputEvent]:
        """Yield what an object says; nothing if it is known and of no interest."""
        raise NotImplementedError

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        text = line.strip()
        if not text:
            return ()
        event = parse(text)
        if event is None:
            shown = text[: 8 * MESSAGE].decode("utf-8", "replace")
            return (OutputEvent(message=one_line(shown, MESSAGE), unknown="no JSON object"),)
        return tuple(self.events(event))

    def judge(self, code: int, summary: LaunchSummary) -> Ending:
        if summary.ending is not None:
            return summary.ending
        if summary.limit_until is not None:
            return Ending.LIMIT
        ending = coral_protocol.by_code(code)
        if code in self.interrupt_codes and summary.output and not summary.error:
            ending = Ending.INTERRUPTED
        if ending is Ending.CRASHED:
            if any(text in summary.stderr.lower() for text in self.lost_session):
                return Ending.UNKNOWN_SESSION
            meaning = None if summary.output else self.patterns.meaning(summary.stderr, self.now())
            return meaning.ending if meaning else Ending.CRASHED
        # If the turn had come to an end, the program would have printed that.
        return Ending.INTERRUPTED

    # --- for the subclasses ---------------------------------------------------------------------------------------

    def failed(self, text: str, status: float | None = None, *, more: str = "", limited: bool = False) -> OutputEvent:
        """Return the event of a turn that an error with this text has ended. `status`, `more`: the HTTP status and
        further text of the model's answer. `limited`: whether the program calls the error a limit of the account."""
        event = OutputEvent(phase="ended", ended=True, message=one_line(text, MESSAGE), error=one_line(text, MESSAGE))
        meaning = self.patterns.meaning(f"{text}\n{more}", self.now())
        if decided := DECISIVE.get(int(status or 0)):
            until = meaning.until if meaning is not None and meaning.ending is decided else None
            return replace(event, ending=decided, limit_until=until)
        if any(words in text.lower() for words in self.lost_session):
            return replace(event, ending=Ending.UNKNOWN_SESSION)
        if meaning is not None:
            return replace(event, ending=meaning.ending, limit_until=meaning.until)
        return replace(event, ending=Ending.LIMIT if limited else BY_STATUS.get(int(status or 0), Ending.CRASHED))

    def logged(self, path: Path, mark: bytes, most: int = _LOG_END) -> Iterator[JsonObject]:
        """Read the last `most` bytes of a JSON lines file, the program's own log of a conversation. Yield the objects
        of the last ENTRIES lines that contain `mark`, beginning with the last; none if the file cannot be read."""
        lines = islice((line for line in reversed(read_end(path, most).splitlines()) if mark in line), ENTRIES)
        return (entry for line in lines if (entry := parse(line)) is not None)

    def option(self, name: str) -> str:
        value = self.options.get(name, "")
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return an option that is a list of texts; None if it is anything else."""
        value = self.options.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and "\0" not in item for item in value):
            return None
        return tuple(value)

    def is_text(self, name: str) -> bool:
        value = self.options.get(name, "")
        return isinstance(value, str) and "\0" not in value

    def limit_problems(self) -> list[str]:
        try:
            limits.own(self.options.get("limits", {}))
        except ValueError as error:
            return [f"limits {error}"]
        return []

    @cached_property
    def patterns(self) -> limits.Patterns:
        """The patterns that say what error texts mean. ValueError for options that `check` refuses."""
        return limits.Patterns(limits.own(self.options.get("limits", {})))
