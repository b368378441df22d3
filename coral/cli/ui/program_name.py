"""Our program as the reader can type it: a hint names a command that works where it is read."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """`coral` where the search path leads to this installation's, else the path of its script from here."""
    script = Path(sys.executable).parent / "coral"
    found = shutil.which("coral")
    if not script.is_file() or (found and Path(found).resolve() == script.resolve()):
        return "coral"
    path = os.path.relpath(script)
    if path.startswith(os.pardir) and len(path) > len(str(script)):
        path = str(script)
    return shlex.quote(path if os.sep in path else os.path.join(os.curdir, path))  # noqa: PTH118 - Path drops the dot
