"""Finds the real program of an agent behind its launcher: as a parent process, a launcher would not pass signals on.

npm puts a launcher on PATH, which is a script, and the program itself into a package for the platform.
"""

import os
import platform
import shutil
import sys
from pathlib import Path


def on_path(name: str) -> Path | None:
    found = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - `which` takes a text
    return Path(found).absolute() if found else None


def is_script(path: Path) -> bool:
    """Return whether the file's first line names a program that runs it."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def native(launcher: Path, package: str, inside: str) -> Path | None:
    """Return the program that npm's launcher would start; None if it is not found. Its package is beside the launcher's
    package, or inside it.

    `package`: the name of that package, with {platform} in it. `inside`: a glob within that package.
    """
    system = "darwin" if sys.platform == "darwin" else "linux"
    machine = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
    name = package.format(platform=f"{system}-{machine}")
    for folder in launcher.resolve().parents:
        for modules in (folder / "node_modules", folder if folder.name == "node_modules" else None):
            found = sorted(modules.glob(f"{name}/{inside}")) if modules else []
            runnable = [path for path in found if os.access(path, os.X_OK)]
            if runnable:
                return runnable[0].resolve()
    return None
