"""What the runtimes of well-known agent programs have in common; each says of itself only what is its own.

The real program is started and no launcher of it; it reports nothing home and does not update itself; its state lies in
a folder of the agent's, where the user's login is linked; an end is judged by what the program said of it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from coral.runtimes import coral_protocol, programs
from coral.runtimes.model import Command, LaunchSpec
from coral.runtimes.reader import Reader

# Of another agent's, or left by one that Coral itself was started from: they redirect a program, or change its manners.
FOREIGN = (
    *("CLAUDE", "ANTHROPIC_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_API_KEY", "GOOGLE_GEMINI_", "GOOGLE_GENAI_"),
    *("QWEN_", "OPENCODE", "COPILOT_", "PI_CODING_AGENT", "CURSOR_"),
)
PLAIN = {"TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}  # UTC: the clock times in texts about limits
_COMMON = ("program", "args", "limits", "keep")


class AgentProgram(Reader):
    """`binary`: the program, where it is not called as the runtime. `package`: what npm installs; `installs`: the line
    that does so where npm does not. `tried`: the version that Coral was tried with; none: it was made after what the
    program's documentation says. `keys`: variables that hold a key.

    `own`: beginnings of variables of its own, which it keeps.

    `tells`: what is known of its usage: money, tokens, or nothing.
    """

    name = ""
    binary = ""
    package = ""
    installs = ""
    instruction_file = "AGENTS.md"
    resumes = True
    uses_model = True
    tells = "tokens"
    tried = ""
    keys: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    quiet: Mapping[str, str] = {}

    # --- what each of them says -----------------------------------------------------------------------------------

    def arguments(self, job: LaunchSpec, session: str) -> tuple[str, ...]:
        """The command line behind the program; `session` is empty for a conversation that the program will name."""
        raise NotImplementedError

    def session_of(self, job: LaunchSpec) -> str:
        """The id that the launch goes on with, or that we choose for it."""
        return job.session or ""

    def links(self) -> Mapping[str, Path]:
        """The login, from its place in the state folder to the user's own."""
        return {}

    def logins(self) -> tuple[Path, ...]:
        """The files that a login leaves, where the user is."""
        return tuple(self.links().values())

    def files(self) -> Mapping[str, str]:
        return {}

    def variables(self, job: LaunchSpec) -> Mapping[str, str]:
        """The environment that makes the program keep its state in the state folder."""
        raise NotImplementedError

    def executable(self, found: Path) -> tuple[str, ...]:
        """How the program is started that was found on PATH."""
        return (str(found),)

    # --- what is the same for all ---------------------------------------------------------------------------------

    def check(self) -> list[str]:
        known = (*_COMMON, *(("effort",) if self.efforts else ()), *self.more_options())
        problems = coral_protocol.unknown(self._options, known)
        problems += [f"{name} must be a list of texts" for name in ("args", "keep") if self.texts(name) is None]
        problems += [f"{name} must be a text" for name in ("program", *self.more_options()) if not self.is_text(name)]
        effort = self._options.get("effort", "")
        if self.efforts and effort and effort not in self.efforts:
            problems.append(f"effort must be one of {', '.join(self.efforts)}; got {effort!r}")
        problems += self.limit_problems()
        return problems or self._missing()

    def more_options(self) -> tuple[str, ...]:
        """Options of its own, all of them texts."""
        return ()

    def command(self, job: LaunchSpec) -> Command:
        session = self.session_of(job)
        found = programs.on_path(self.program)
        start = self.executable(found) if found else (self.program,)
        return Command(
            argv=(*start, *self.arguments(job, session)),
            env={**PLAIN, **self.quiet, **self.variables(job)},
            session=session,
            drop=FOREIGN,
            keep=(*self.own, *(self.texts("keep") or ())),
            files=self.files(),
            links=self.links(),
        )

    # --- help for the modules -------------------------------------------------------------------------------------

    def extra(self) -> tuple[str, ...]:
        """Arguments that the task adds."""
        return self.texts("args") or ()

    @property
    def program(self) -> str:
        return self.option("program") or self.binary or self.name

    def _missing(self) -> list[str]:
        if programs.on_path(self.program):
            return []
        where = "there is no such program" if os.sep in self.program else "the program is not on PATH"
        return [f"{self.program}: {where}; `{self.installs or f'npm install -g {self.package}'}` installs it"]
