"""What becomes of a check that cannot be made on a machine in trouble: it is said, and stops nothing.

A module of its own: a start waits for nothing else of `doctor`.
"""

import subprocess
from collections.abc import Callable

from coral.errors import CoralError
from workspace.errors import WorkspaceError

# By what a check may fail that is no mistake of ours alone: neither what it looks at nor how is certain.
UNCHECKED = (OSError, ValueError, LookupError, RuntimeError, subprocess.SubprocessError, CoralError, WorkspaceError)


def attempted(name: str, check: Callable[[], str]) -> str:
    """What a check before a start has to say, or that it cannot be made: neither stops a start that could work."""
    try:
        return check()
    except UNCHECKED as error:
        return f"{name} cannot be checked: {error}; the run starts all the same"
