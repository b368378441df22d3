"""Describes the machine that figures were measured on, without anything that identifies it."""

import os
import platform
import subprocess
from datetime import UTC, datetime

from benchmarks.results import Machine


def here() -> Machine:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()
    return Machine(
        cores=os.cpu_count() or 0,
        system=platform.system(),
        python=platform.python_version(),
        git=git[2] if len(git) > 2 else "",
        load=round(os.getloadavg()[0], 2),
    )


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"
