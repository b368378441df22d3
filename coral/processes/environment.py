"""The environment that agents and graders start with: the user's, without our variables and those that redirect git."""

import os
import sys
from pathlib import Path

from workspace.layout import Layout

KEPT = ("CORAL_TOOL_SECONDS",)  # how long `coral eval` may wait: the user knows the agent program


def base() -> dict[str, str]:
    """The user's environment without GIT_* (which redirects every git) and CORAL_* (of an outer run)."""
    return {
        name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(("GIT_", "CORAL_"))
    }


def of_agent(layout: Layout, agent: str) -> dict[str, str]:
    """`coral` is found first in the folder of the interpreter that supervises, whatever else is installed."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return {**base(), "PATH": path, "CORAL_RUN": str(layout.root), "CORAL_AGENT": agent}
