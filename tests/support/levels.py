"""The levels at which a program is sealed, as parameters of tests. A level that this machine lacks is skipped.

Other users must reach the Python that runs a test of the level `user`. Where ours lies in a closed home, such a test is
run by a pytest of its own: by another Python of the same version, with the packages of this one.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from small_disk import run_bounded

from coral.processes.seal import problem
from workspace.owner import closed_to_others
from workspace.seal import Level

INSIDE = "CORAL_TEST_OTHER_PYTHON"
MARGIN = 100.0  # seconds before the end of the test, so that the end of what it runs is ours to see to
_ROOT = Path(__file__).parents[2]


def params(*levels: Level) -> list[object]:
    """Return each level as a parameter of a test."""
    return [pytest.param(level, marks=_marks(level), id=level) for level in levels]


def _marks(level: Level) -> list[pytest.MarkDecorator]:
    reason = _missing(level)
    skip = pytest.mark.skipif(bool(reason), reason=f"NOT RUN: {reason}")
    return [skip, pytest.mark.own_user] if level is Level.USER else [skip]


def _missing(level: Level) -> str:
    reason = problem(level)
    return "" if level is Level.USER and reason and other_python() else reason


@cache
def other_python() -> str:
    """Return a Python of the same version that other users reach; empty where there is none, or none is needed."""
    if os.geteuid() != 0 or INSIDE in os.environ or closed_to_others(_ROOT):
        return ""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    return found if found and not closed_to_others(Path(found)) else ""


def run_inside(item: pytest.Function) -> None:
    """Run the test by the other Python."""
    python, place = _environment(), Path(tempfile.mkdtemp(prefix="coral-other-python-"))
    try:
        place.chmod(0o711)
        plain = ["-q", "-p", "pytest_timeout", "-p", "no:cacheprovider", "--basetemp", str(place / "pytest")]
        env = {**os.environ, INSIDE: "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(place)}
        env["PATH"] = f"{python.parent}{os.pathsep}{env['PATH']}"
        command = [str(python), "-m", "pytest", *plain, item.nodeid]
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0] if mark else item.config.getini("timeout")) - MARGIN
        code, output = run_bounded(command, seconds, cwd=item.config.rootpath, env=env)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert code == 0, output[-20_000:]
    if " skipped" in output.splitlines()[-1]:
        pytest.skip(output[-2000:])


@cache
def _environment() -> Path:
    """Return the interpreter of an environment of the other Python, with the packages of this one and our command line.
    It is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="coral-other-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    subprocess.run([other_python(), "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    library = next(folder.glob("lib/python*/site-packages"))
    (library / "ours.pth").write_text("\n".join([str(_ROOT), *packages]) + "\n")
    script = folder / "bin" / "coral"
    script.write_text(f"#!{python}\nimport sys\nfrom coral.cli import program\nsys.exit(program())\n")
    script.chmod(0o755)
    return python


def open_to_others(folder: Path) -> None:
    """Let other users pass a temporary folder, and those that pytest has made above it."""
    top = Path(tempfile.gettempdir()).resolve()
    for path in (folder, *folder.parents):
        if path == top or not path.is_relative_to(top):
            break
        path.chmod(path.stat().st_mode | 0o011)
