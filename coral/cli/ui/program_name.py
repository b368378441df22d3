"""How the user can type `coral` from the current directory, so that the commands in our hints work."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from coral.cli.run_data import run_lookup
from workspace.layout import Layout


def program() -> str:
    """`coral` where PATH leads to this installation, else the path of its script from here."""
    script = Path(sys.executable).parent / "coral"
    found = shutil.which("coral")
    if not script.is_file() or (found and Path(found).resolve() == script.resolve()):
        return "coral"
    path = os.path.relpath(script)
    if path.startswith(os.pardir) and len(path) > len(str(script)):
        path = str(script)
    return shlex.quote(path if os.sep in path else os.path.join(os.curdir, path))  # noqa: PTH118 - Path drops the dot


def command(name: str, run: Layout) -> str:
    """A command about this run as the user can type it: `coral attach --run NAME`."""
    return f"{program()} {name}{run_lookup.flag(run)}"
