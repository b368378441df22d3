"""Runs a real process that follows a script, for tests and dry runs in which an agent must do given things in order."""

import json
from pathlib import Path

from coral.runtimes.coral_protocol import OwnProgram, unknown
from coral.runtimes.model import LaunchSpec
from coral.runtimes.scripted.script import load
from coral.runtimes.scripted.validate import problems as script_problems

LONGEST = 100_000  # bytes; the kernel's limit for one argument is a little higher


class Scripted(OwnProgram):
    """The runtime `scripted`. Option `script`: a list of steps, or the path of a JSON or YAML file that holds one."""

    name = "scripted"
    module = "coral.runtimes.scripted.program"
    reports = "money"
    path_options = ("script",)

    def check(self) -> list[str]:
        problems = unknown(self.options, ("script",))
        if problems:
            return problems
        try:
            steps = load(self._script())
        except (OSError, ValueError) as error:
            return [f"script cannot be read: {error}"]
        if len(self._script().encode()) > LONGEST:
            return ["script is too long for a command line: put it into a file"]
        return script_problems(steps)

    def arguments(self, spec: LaunchSpec) -> tuple[str, ...]:
        return ("--agent", spec.agent, "--launch", str(spec.launch), "--script", self._script())

    def _script(self) -> str:
        """Return the script as an argument of the program: the path of a file, or the steps as JSON."""
        given = self.options.get("script", [])
        return str(Path(given).absolute()) if isinstance(given, str) else json.dumps(given)
