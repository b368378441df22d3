"""Runs Kiro's command line by the Agent Client Protocol, after its documentation: nobody has run it with Coral yet.

The program reports its usage in credits of its own, which cannot be converted to tokens or money.
"""

import os
from pathlib import Path

from coral.runtimes.acp.runtime import AcpProgram
from coral.runtimes.model import LaunchSpec


class Kiro(AcpProgram):
    name = "kiro"
    binary = "kiro-cli"
    install_command = "curl -fsSL https://cli.kiro.dev/install | bash"
    keys = ("KIRO_API_KEY",)
    reports = ""
    efforts = ("low", "medium", "high", "xhigh", "max")

    def arguments(self, spec: LaunchSpec, session: str) -> tuple[str, ...]:  # noqa: ARG002 - the client passes the session on
        words = ["acp", "--trust-all-tools", *self.flag("--model", spec.model)]
        return (*words, *self.flag("--effort", self.option("effort")), *self.extra())

    def logins(self) -> tuple[Path, ...]:
        return (Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "kiro-cli/data.sqlite3",)
