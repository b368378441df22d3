"""The base class of the runtimes of well-known agent programs; each subclass adds what is particular to its program.

Coral starts the real program and not its launcher, with telemetry and self-update off. The program keeps its state in
a folder of the agent, into which the user's login is linked. The program's own words decide what its end means.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from coral.runtimes import coral_protocol, programs
from coral.runtimes.json_lines import Reader
from coral.runtimes.model import Command, LaunchSpec, new_session

# Variables of other agent programs, or of one from which Coral was started: they would redirect or change a program.
FOREIGN = (
    *("CLAUDE", "ANTHROPIC_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_API_KEY", "GOOGLE_GEMINI_", "GOOGLE_GENAI_"),
    *("QWEN_", "OPENCODE", "COPILOT_", "PI_CODING_AGENT", "CURSOR_"),
)
PLAIN = {"TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}  # UTC: texts about limits hold clock times
_COMMON = ("program", "args", "limits", "keep")


class AgentProgram(Reader):
    """The base of the runtimes of agent programs. `binary`: the program's name on PATH, if it is not the runtime's.
    `package`: what npm installs; `install_command`: what else installs the program. `keys`: the variables that may hold
    an API key.

    `kept_variables`: prefixes of environment variables that reach the program although FOREIGN removes them.
    `locks`: the locks that the program leaves in the state folder when it is killed.
    `state_variable`: the variable that names the program's folder for its state, if one alone does.
    `chooses_session`: whether we choose the id of a new conversation. `needs_login`: whether the program does nothing
    without a login, a key or another variable that it is given. `behind_launcher`: the package of the real program and
    its place in that, where npm's launcher is a script.
    """

    name = ""
    binary = ""
    package = ""
    install_command = ""
    costs_money = True
    reports = "tokens"
    verified_version = ""
    keys: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    kept_variables: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    state_variable = ""
    chooses_session = False
    needs_login = True
    behind_launcher: tuple[str, str] | None = None
    quiet_environment: Mapping[str, str] = {}

    # --- what subclasses override ---------------------------------------------------------------------------------

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:
        """Return the arguments of the program; `session` is empty if the program will choose the conversation's id."""
        raise NotImplementedError

    def session_of(self, spec: LaunchSpec) -> str:
        """Return the conversation's id: the one to resume, or one that we choose; empty if the program chooses it."""
        return spec.session or (new_session(spec) if self.chooses_session else "")

    def links(self) -> Mapping[str, Path]:
        """Return the files of the user's login, by their path in the state folder."""
        return {}

    def scratch(self) -> Mapping[str, Path]:
        """Return the user's folders that the program writes to whenever it starts, by the path below a home at which it
        looks for each."""
        return {}

    def logins(self) -> tuple[Path, ...]:
        """Return the user's files that exist if the user has logged in."""
        return tuple(self.links().values())

    def files(self) -> Mapping[str, str]:
        """Return the text of settings files, by their path in the state folder."""
        return {}

    def variables(self, spec: LaunchSpec) -> Mapping[str, str]:
        """Return the environment that makes the program keep its state in the state folder."""
        return {self.state_variable: str(spec.state)}

    def executable(self, found: Path) -> tuple[str, ...]:
        """Return the words that start the program that was `found` on PATH."""
        hidden = programs.native(found, *self.behind_launcher) if self.behind_launcher else None
        return (str(hidden if hidden and programs.is_script(found) else found),)

    # --- what is the same for all programs ------------------------------------------------------------------------

    def check(self) -> list[str]:
        known = (*_COMMON, *(("effort",) if self.efforts else ()), *self.more_options())
        problems = coral_protocol.unknown(self.options, known)
        problems += [f"{name} must be a list of texts" for name in ("args", "keep") if self.texts(name) is None]
        problems += [f"{name} must be a text" for name in ("program", *self.more_options()) if not self.is_text(name)]
        effort = self.options.get("effort", "")
        if self.efforts and effort and effort not in self.efforts:
            problems.append(f"effort must be one of {', '.join(self.efforts)}; got {effort!r}")
        problems += self.limit_problems()
        return problems or self._missing()

    def more_options(self) -> tuple[str, ...]:
        """Return the names of further options; their values are texts."""
        return ()

    def command(self, spec: LaunchSpec) -> Command:
        session = self.session_of(spec)
        found = programs.on_path(self.program)
        start = self.executable(found) if found else (self.program,)
        return Command(
            argv=(*start, *self.arguments(spec, session)),
            env={**PLAIN, **self.quiet_environment, **self.variables(spec)},
            session=session,
            drop=FOREIGN,
            keep=(*self.kept_variables, *(self.texts("keep") or ())),
            files=self.files(),
            links=self.links(),
            locks=self.locks,
            scratch=self.scratch(),
        )

    def login(self) -> str | None:
        """Say where a login or a key was found; None if there is none where we look."""
        if given := [key for key in self.keys if os.environ.get(key)]:
            return f"{given[0]} is set"
        return next((f"there is one in {path}" for path in self.logins() if path.exists()), None)

    def missing_login(self) -> str:
        if not self.needs_login or self.login() is not None:
            return ""
        # A program of the user's may set a key, other variables may name a gateway, a cloud or a local model, and macOS
        # has a keychain.
        prefixes = (*self.kept_variables, *(self.texts("keep") or ()))
        if self.option("program") or sys.platform == "darwin" or any(name.startswith(prefixes) for name in os.environ):
            return ""
        return f"no login of {self.program} was found; looked for: {self.login_places}"

    @property
    def login_places(self) -> str:
        return ", ".join([*self.keys[:2], *[str(path) for path in self.logins()][:1]])

    @property
    def how_to_log_in(self) -> str:
        key = f", or set {self.keys[0]}" if self.keys else ""
        return f"log in once with `{self.program}`{key}"

    # --- for the subclasses ---------------------------------------------------------------------------------------

    def flag(self, option: str, value: str) -> tuple[str, ...]:
        """Return an option of the program with its value; nothing where there is no value."""
        return (option, value) if value else ()

    def extra(self) -> tuple[str, ...]:
        return self.texts("args") or ()

    @property
    def program(self) -> str:
        return self.option("program") or self.binary or self.name

    def _missing(self) -> list[str]:
        if programs.on_path(self.program):
            return []
        where = "there is no such program" if os.sep in self.program else "the program is not on PATH"
        return [f"{self.program}: {where}; `{self.install_command or f'npm install -g {self.package}'}` installs it"]
