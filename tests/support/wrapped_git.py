"""A git on PATH that first runs a line of shell, for tests that count or hold the git processes of a piece of work."""

import os
import shlex
import shutil
from pathlib import Path

import pytest

from workspace.git import load
from workspace.gitenv import FLAGS


def wrap_git(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str = 'echo "$@" >> "$LOG"') -> Path:
    """Put a wrapper into `folder` and first on PATH. Its line may write to $LOG, which is returned."""
    load()  # GitPython asks a git for its version when it is imported
    wrapper, log = folder / "bin" / "git", folder / "log"
    wrapper.parent.mkdir()
    git, quoted = shlex.quote(str(shutil.which("git"))), shlex.quote(str(log))
    wrapper.write_text(f'#!/bin/sh\nLOG={quoted}\n{line}\nexec {git} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def verbs(log: Path) -> list[str]:
    """The commands of git that were run, in the order of their names."""
    return sorted(line.split()[len(FLAGS)] for line in log.read_text().splitlines())
