"""Runs any agent that speaks the Agent Client Protocol, by the command that starts it; a small client of ours sends it
the prompt.

The client needs the protocol's SDK, which is an extra. The agent keeps its state and login where it always does.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from coral import extras
from coral.runtimes import coral_protocol, template
from coral.runtimes.acp.lines import AcpReader
from coral.runtimes.agent import PLAIN, AgentProgram
from coral.runtimes.model import Command, LaunchSpec
from workspace.layout import leads_outside

REPORTS = ("money", "tokens", "")
_TEXTS = ("mode", "effort", "auth", "instruction_file", "reports")


def client(command: Sequence[str], spec: LaunchSpec, **choices: str) -> tuple[str, ...]:
    """Return the command line of our client, for an agent that is started by `command`. An empty choice is left out."""
    given = {"state": str(spec.state), "session": spec.session or "", **choices}
    words = [f"--{name}={value}" for name, value in given.items() if value]
    return (sys.executable, "-P", "-m", "coral.runtimes.acp.program", *words, "--", *command)


def folders_of(program: str) -> tuple[Path, ...]:
    """Return the folders in which a program usually keeps its state and login: those that have its name."""
    name, home = Path(program).name, Path.home()
    places = (("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state"))
    return (*(Path(os.environ.get(variable) or home / usual) / name for variable, usual in places), home / f".{name}")


def missing_sdk() -> list[str]:
    if find_spec("acp") is not None:
        return []
    return [f"the SDK of the Agent Client Protocol is not installed; `{extras.installs('acp')}` installs it"]


class Acp(AcpReader):
    """The runtime of any agent that speaks the protocol. Options: `command` starts the agent, `env` holds variables for
    it; both may have placeholders."""

    name = "acp"
    costs_money = True

    def __init__(self, options: Mapping[str, object]) -> None:
        super().__init__(options)
        self.instruction_file = self.option("instruction_file") or "AGENTS.md"
        self.resumes = options.get("resumes", True) is True
        self.reports = self.option("reports")

    @property
    def account(self) -> str:
        return template.account(self.name, self.options.get("command"))

    def check(self) -> list[str]:
        problems = coral_protocol.unknown(self.options, ("command", "env", "resumes", "limits", *_TEXTS))
        problems += [f"{name} must be a text" for name in _TEXTS if not self.is_text(name)]
        if not isinstance(self.options.get("resumes", True), bool):
            problems.append("resumes must be true or false")
        if self.reports not in REPORTS:
            problems.append(f"reports must be money or tokens; got {self.reports!r}")
        if leads_outside(self.instruction_file):
            problems.append(f"instruction_file must be a path inside the workspace; got {self.instruction_file!r}")
        problems += [*self._env_problems(), *self.limit_problems()]
        return problems or template.problems("command", self.options.get("command", "")) or missing_sdk()

    def command(self, spec: LaunchSpec) -> Command:
        """Return how a launch is started. ValueError for options that `check` refuses."""
        session = spec.session or "" if self.resumes else ""
        words, known = template.words(self.options.get("command")), template.values(spec, session)
        choices = {name: self.option(name) for name in ("mode", "effort", "auth")}
        model = "" if template.has_placeholder(words, "model") else spec.model
        if not (started := template.fill(words, known)):
            raise ValueError("there is no command")
        argv = client(started, replace(spec, session=session), model=model, **choices)
        names = tuple(self._env())
        filled = dict(zip(names, template.fill(tuple(self._env().values()), known), strict=True))
        return Command(argv=argv, env={**PLAIN, **filled}, session=session, writes=folders_of(started[0]))

    def _env(self) -> Mapping[str, str]:
        found = self.options.get("env", {})
        return found if isinstance(found, Mapping) else {}

    def _env_problems(self) -> list[str]:
        given = self.options.get("env", {})
        if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
            return ["env must hold texts by the name of a variable"]
        return []


class AcpProgram(AcpReader, AgentProgram):
    """The base of runtimes for programs that are known to speak the protocol, and are started with fixed arguments."""

    needs_login = False  # where these programs keep their logins has not been tried

    def check(self) -> list[str]:
        return super().check() or missing_sdk()

    def command(self, spec: LaunchSpec) -> Command:
        command = super().command(spec)
        writes = (*(path.parent for path in self.logins()), *folders_of(self.name))
        return replace(command, argv=client(command.argv, spec, auth=self.auth()), writes=writes)

    def variables(self, spec: LaunchSpec) -> Mapping[str, str]:  # noqa: ARG002 - of all programs
        """Return no variables: the sessions stay with the user's, because no documentation says how to move them
        without the login."""
        return {}

    def auth(self) -> str:
        """Return the method of the protocol by which the program uses the user's login; empty if it does so unasked."""
        return ""
