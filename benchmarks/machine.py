"""Describes the machine that figures were measured on, without anything that identifies it."""

import os
import platform
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.results import Machine


def here() -> Machine:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()
    return Machine(
        cores=os.cpu_count() or 0,
        system=platform.system(),
        python=platform.python_version(),
        git=git[2] if len(git) > 2 else "",
        load=round(os.getloadavg()[0], 2),
        disk=_disk(),
    )


def _disk() -> str:
    """Return the file system for temporary files. ext4 without a journal is named as such: after many files were
    removed, it takes ten times as long to make one."""
    place = Path(tempfile.gettempdir()).resolve()
    holding = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    if not holding:
        return ""
    found = max(holding, key=lambda part: len(part.mountpoint))
    device = Path(found.device).name
    has_none = Path("/proc/fs/ext4", device).exists() and not any(Path("/proc/fs/jbd2").glob(f"{device}-*"))
    return f"{found.fstype} without a journal" if has_none else found.fstype


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"
