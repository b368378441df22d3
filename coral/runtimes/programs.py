"""Where an agent's real program is: never a launcher of it, which would be a parent that signals do not get past.

npm puts a launcher on PATH, a script, and the program itself into a package of its own for each platform.
"""

import os
import platform
import shutil
import sys
from pathlib import Path


def on_path(name: str) -> Path | None:
    """What a shell would start."""
    found = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - `which` takes a text
    return Path(found).absolute() if found else None


def is_script(path: Path) -> bool:
    """Whether a file is started by another program that its first line names."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def native(launcher: Path, package: str, inside: str) -> Path | None:
    """The program that a launcher of npm would start: in the platform's package beside the launcher's own, or within.

    `package`: its name with {platform} in it; `inside`: a glob within that package.
    """
    name = package.format(platform=f"{_system()}-{_machine()}")
    for folder in launcher.resolve().parents:
        for modules in (folder / "node_modules", folder if folder.name == "node_modules" else None):
            found = sorted(modules.glob(f"{name}/{inside}")) if modules else []
            runnable = [each for each in found if os.access(each, os.X_OK)]
            if runnable:
                return runnable[0].resolve()
    return None


def _system() -> str:
    return "darwin" if sys.platform == "darwin" else "linux"


def _machine() -> str:
    return "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
