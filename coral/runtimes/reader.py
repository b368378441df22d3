"""How programs are read that print JSON, an object a line, and judged: by what they said of their end."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from attempts.fields import one_line
from coral.runtimes import coral_protocol, limits
from coral.runtimes.event import MESSAGE, Event, parse
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent


class Reader:
    """`cut`: exit codes that the program has after SIGINT alone. `lost`: how it says, in lower case, that it does not
    know a conversation."""

    lost: tuple[str, ...] = ()
    cut: tuple[int, ...] = ()
    now: Callable[[], float] = staticmethod(time.time)

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options

    def events(self, event: Event) -> Iterator[OutputEvent]:
        """What a line says. Nothing at all means: known, and of no interest."""
        raise NotImplementedError

    def read(self, line: bytes) -> tuple[OutputEvent, ...]:
        text = line.strip()
        if not text:
            return ()
        event = parse(text)
        if event is None:
            said = text[: 8 * MESSAGE].decode("utf-8", "replace")
            return (OutputEvent(message=one_line(said, MESSAGE), unknown="no JSON object"),)
        return tuple(self.events(event))

    def judge(self, code: int, said: LaunchSummary) -> Ending:
        if said.ending is not None:
            return said.ending
        if said.limit_until is not None:
            return Ending.LIMIT
        ending = coral_protocol.by_code(code)
        if code in self.cut and said.output and not said.error:
            ending = Ending.INTERRUPTED
        if ending is Ending.CRASHED:
            if any(each in said.stderr.lower() for each in self.lost):
                return Ending.UNKNOWN_SESSION
            meaning = None if said.output else self.patterns.meaning(said.stderr, self.now())
            return meaning.ending if meaning else Ending.CRASHED
        # It would have said so, had its turn come to an end.
        return Ending.INTERRUPTED

    # --- help for the modules -------------------------------------------------------------------------------------

    def failed(self, text: str, status: float | None = None, *, more: str = "", limited: bool = False) -> OutputEvent:
        """The end of a turn by an error. `status` and `more`: of the model's answer, and `limited`: that it is a limit
        of the account, where the program passes them on."""
        sign = OutputEvent(phase="ended", ended=True, message=one_line(text, MESSAGE), error=one_line(text, MESSAGE))
        if any(each in text.lower() for each in self.lost):
            return replace(sign, ending=Ending.UNKNOWN_SESSION)
        if meaning := self.patterns.meaning(f"{text}\n{more}", self.now()):
            return replace(sign, ending=meaning.ending, limit_until=meaning.until)
        denied = status in (401, 402, 403)
        return replace(sign, ending=Ending.LIMIT if limited else Ending.TERMINAL if denied else Ending.CRASHED)

    def option(self, name: str) -> str:
        value = self._options.get(name, "")
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...] | None:
        """An option that is a list of texts; None for anything else."""
        value = self._options.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) and "\0" not in each for each in value):
            return None
        return tuple(value)

    def is_text(self, name: str) -> bool:
        value = self._options.get(name, "")
        return isinstance(value, str) and "\0" not in value

    def limit_problems(self) -> list[str]:
        try:
            limits.own(self._options.get("limits", {}))
        except ValueError as error:
            return [f"limits {error}"]
        return []

    @cached_property
    def patterns(self) -> limits.Patterns:
        """ValueError for options that `check` refuses."""
        return limits.Patterns(limits.own(self._options.get("limits", {})))
