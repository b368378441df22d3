"""The line that installs an extra is one that works where Coral runs, and names what the distribution does."""

import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from coral import extras

ROOT = Path(__file__).parents[3]


def test_the_packages_are_those_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["optional-dependencies"]
    apart = ("dev", "docs", "browser")  # what tests and the site need is no part of a run
    assert {extra: list(packages) for extra, packages in extras.PACKAGES.items()} == {
        extra: packages for extra, packages in declared.items() if extra not in apart
    }


def test_the_line_is_for_a_shell_and_this_python(monkeypatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: name)
    packages = extras.PACKAGES["search"]
    assert shlex.split(extras.installs("search")) == [sys.executable, "-m", "pip", "install", *packages]
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert shlex.split(extras.installs("search")) == ["uv", "pip", "install", "--python", sys.executable, *packages]


@pytest.mark.skipif(find_spec("pip") is None, reason="this environment has no pip")
def test_pip_takes_the_line_and_finds_what_is_here_already() -> None:
    """The SDK is installed where these tests run: nothing is fetched."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"{extras.installs('acp')} --no-index --disable-pip-version-check --no-deps"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "already satisfied: agent-client-protocol" in done.stdout
