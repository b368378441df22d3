"""What to do about a check that cannot be made, as on a machine in trouble: report that, and go on.

This is a module of its own so that a start need not import `doctor`.
"""

import subprocess
from collections.abc import Callable

from coral.errors import CoralError
from workspace.errors import WorkspaceError

# Errors with which a check may fail on a machine in trouble: neither what it looks at nor its tools can be relied on.
UNCHECKED = (OSError, ValueError, LookupError, RuntimeError, subprocess.SubprocessError, CoralError, WorkspaceError)


def attempted(name: str, check: Callable[[], str]) -> str:
    """Return the result of a check before a start, or a text that it cannot be made: neither stops the start."""
    try:
        return check()
    except UNCHECKED as error:
        return f"{name} cannot be checked: {error}; the run starts all the same"
