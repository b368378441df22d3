"""An error of ours: one line, exit 3, and the traceback kept in a file that can be sent to us."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from coral import __version__

BROKEN = 3


def report(error: Exception) -> int:
    """Say that Coral broke and where the traceback is; with CORAL_DEBUG=1 print it in full."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("CORAL_DEBUG"):
        print(text, file=sys.stderr, end="")
        return BROKEN
    line = str(error).partition("\n")[0]
    print(f"coral: internal error: {type(error).__name__}: {line}"[:300], file=sys.stderr)
    print(f"  {_keep(text)}", file=sys.stderr)
    return BROKEN


def _keep(text: str) -> str:
    try:
        handle, path = tempfile.mkstemp(prefix="coral-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"coral {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{text}")
    except OSError:
        return "CORAL_DEBUG=1 shows the traceback"
    return f"the traceback is in {path}"
