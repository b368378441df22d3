"""Runs Cursor's agent by the Agent Client Protocol, after its documentation: nobody has run it with Coral yet.

The agent reports no usage, and uses its login only when the client asks for it.
"""

import os
from pathlib import Path

from coral.runtimes.acp.runtime import AcpProgram
from coral.runtimes.model import LaunchSpec


class Cursor(AcpProgram):
    name = "cursor"
    binary = "cursor-agent"
    install_command = "curl https://cursor.com/install -fsS | bash"
    keys = ("CURSOR_API_KEY",)
    reports = ""
    kept_variables = ("CURSOR_API_", "CURSOR_CONFIG_DIR")

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:  # noqa: ARG002 - the client passes the session on
        return ("--trust", *self.flag("--model", spec.model), *self.extra(), "acp")

    def auth(self) -> str:
        return "" if os.environ.get("CURSOR_API_KEY") else "cursor_login"

    def logins(self) -> tuple[Path, ...]:
        return (Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "cursor/auth.json",)
