"""Ends the local process of a grade or a launch as the program on the node has ended. Standard library only."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys


def end_as(code: int) -> None:
    """End this process with an exit code; with a negative one, by that signal."""
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no other handler
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)
