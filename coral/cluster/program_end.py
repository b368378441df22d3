"""Ends a local process as the program on its node has ended: with the same exit code, or by the same signal. Standard
library only.
"""

from __future__ import annotations

import os
import sys


def end_as(code: int) -> None:
    """End this process with the exit code `code`, or, if `code` is negative, by the signal of the number `-code`."""
    if code >= 0:
        os._exit(code)
    import contextlib  # few programs end so, and each grade would pay for these
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no other handler
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    sys.exit(128 - code)
