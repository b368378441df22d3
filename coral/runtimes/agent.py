"""What the runtimes of well-known agent programs have in common; each says of itself only what is its own.

The real program is started and no launcher of it; it reports nothing home and does not update itself; its state lies in
a folder of the agent's, where the user's login is linked; an end is judged by what the program said of it.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from attempts.fields import one_line
from coral.runtimes import limits, lines, programs
from coral.runtimes.event import MESSAGE, Event, parse
from coral.runtimes.model import Command, Ending, Job, Said, Sign

# Of another agent's, or left by one that Coral itself was started from: they redirect a program, or change its manners.
FOREIGN = (
    *("CLAUDE", "ANTHROPIC_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_API_KEY", "GOOGLE_GEMINI_", "GOOGLE_GENAI_"),
    *("QWEN_", "OPENCODE", "COPILOT_", "PI_CODING_AGENT"),
)
PLAIN = {"TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}  # UTC: the clock times in texts about limits
_COMMON = ("program", "args", "limits", "keep")


class AgentProgram:
    """`package`: what npm installs; `tried`: the version that Coral was tried with. `keys`: variables that hold a key.

    `own`: beginnings of variables of its own, which it keeps.

    `tells`: what is known of its usage: money, tokens, or nothing.

    `cut`: exit codes that it has after SIGINT alone. `lost`: how it says, in lower case, that it does not know a
    conversation.
    """

    name = ""
    package = ""
    instruction_file = "AGENTS.md"
    resumes = True
    uses_model = True
    tells = "tokens"
    tried = ""
    keys: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    quiet: Mapping[str, str] = {}
    lost: tuple[str, ...] = ()
    cut: tuple[int, ...] = ()
    now: Callable[[], float] = staticmethod(time.time)

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options

    # --- what each of them says -----------------------------------------------------------------------------------

    def arguments(self, job: Job, session: str) -> tuple[str, ...]:
        """The command line behind the program; `session` is empty for a conversation that the program will name."""
        raise NotImplementedError

    def events(self, event: Event) -> Iterator[Sign]:
        """What a line says. Nothing at all means: known, and of no interest."""
        raise NotImplementedError

    def session_of(self, job: Job) -> str:
        """The id that the launch goes on with, or that we choose for it."""
        return job.session or ""

    def links(self) -> Mapping[str, Path]:
        """The login, from its place in the state folder to the user's own."""
        return {}

    def files(self) -> Mapping[str, str]:
        return {}

    def variables(self, job: Job) -> Mapping[str, str]:
        """The environment that makes the program keep its state in the state folder."""
        raise NotImplementedError

    def executable(self, found: Path) -> tuple[str, ...]:
        """How the program is started that was found on PATH."""
        return (str(found),)

    # --- what is the same for all ---------------------------------------------------------------------------------

    def check(self) -> list[str]:
        known = (*_COMMON, *(("effort",) if self.efforts else ()), *self.more_options())
        problems = lines.unknown(self._options, known)
        problems += [f"{name} must be a list of texts" for name in ("args", "keep") if self._texts(name) is None]
        problems += [f"{name} must be a text" for name in ("program", *self.more_options()) if not self._is_text(name)]
        effort = self._options.get("effort", "")
        if self.efforts and effort and effort not in self.efforts:
            problems.append(f"effort must be one of {', '.join(self.efforts)}; got {effort!r}")
        try:
            limits.own(self._options.get("limits", {}))
        except ValueError as error:
            problems.append(f"limits {error}")
        return problems or self._missing()

    def more_options(self) -> tuple[str, ...]:
        """Options of its own, all of them texts."""
        return ()

    def command(self, job: Job) -> Command:
        session = self.session_of(job)
        found = programs.on_path(self.program)
        start = self.executable(found) if found else (self.program,)
        return Command(
            argv=(*start, *self.arguments(job, session)),
            env={**PLAIN, **self.quiet, **self.variables(job)},
            session=session,
            drop=FOREIGN,
            keep=(*self.own, *(self._texts("keep") or ())),
            files=self.files(),
            links=self.links(),
        )

    def read(self, line: bytes) -> tuple[Sign, ...]:
        text = line.strip()
        if not text:
            return ()
        event = parse(text)
        if event is None:
            said = text[: 8 * MESSAGE].decode("utf-8", "replace")
            return (Sign(message=one_line(said, MESSAGE), unknown="no JSON object"),)
        return tuple(self.events(event))

    def judge(self, code: int, said: Said) -> Ending:
        if said.ending is not None:
            return said.ending
        if said.limit_until is not None:
            return Ending.LIMIT
        ending = lines.by_code(code)
        if code in self.cut and said.output and not said.error:
            ending = Ending.INTERRUPTED
        if ending is Ending.CRASHED:
            if any(each in said.stderr.lower() for each in self.lost):
                return Ending.UNKNOWN_SESSION
            meaning = None if said.output else self._patterns.meaning(said.stderr, self.now())
            return meaning.ending if meaning else Ending.CRASHED
        # It would have said so, had its turn come to an end.
        return Ending.INTERRUPTED

    # --- help for the modules -------------------------------------------------------------------------------------

    def failed(self, text: str, status: float | None = None, *, more: str = "", limited: bool = False) -> Sign:
        """The end of a turn by an error. `status` and `more`: of the model's answer, and `limited`: that it is a limit
        of the account, where the program passes them on."""
        sign = Sign(phase="ended", ended=True, message=one_line(text, MESSAGE), error=one_line(text, MESSAGE))
        if any(each in text.lower() for each in self.lost):
            return replace(sign, ending=Ending.UNKNOWN_SESSION)
        if meaning := self._patterns.meaning(f"{text}\n{more}", self.now()):
            return replace(sign, ending=meaning.ending, limit_until=meaning.until)
        denied = status in (401, 402, 403)
        return replace(sign, ending=Ending.LIMIT if limited else Ending.TERMINAL if denied else Ending.CRASHED)

    def option(self, name: str) -> str:
        value = self._options.get(name, "")
        return value if isinstance(value, str) else ""

    def extra(self) -> tuple[str, ...]:
        """Arguments that the task adds."""
        return self._texts("args") or ()

    @property
    def program(self) -> str:
        return self.option("program") or self.name

    @cached_property
    def _patterns(self) -> limits.Patterns:
        """ValueError for options that `check` refuses."""
        return limits.Patterns(limits.own(self._options.get("limits", {})))

    def _missing(self) -> list[str]:
        if programs.on_path(self.program):
            return []
        where = "there is no such program" if os.sep in self.program else "the program is not on PATH"
        return [f"{self.program}: {where}; `npm install -g {self.package}` installs it"]

    def _texts(self, name: str) -> tuple[str, ...] | None:
        value = self._options.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) and "\0" not in each for each in value):
            return None
        return tuple(value)

    def _is_text(self, name: str) -> bool:
        value = self._options.get(name, "")
        return isinstance(value, str) and "\0" not in value
