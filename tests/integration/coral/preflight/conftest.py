"""A machine with git and a few tools, a home without a login, and a task's folder to stand in."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh", "cat", "sleep", "touch", "grep", "mv"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "task" / "seed").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "task")
    return tmp_path
