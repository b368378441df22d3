"""What tests of mirrors need."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of folders that cannot be read from now on, as where an agent has taken away its own right to."""
    names, scandir = set[str](), os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name in names:
            raise PermissionError(errno.EACCES, "no", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return names


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of files and folders that the disk cannot read from now on."""
    names = set[str]()

    def failing(call: Any) -> Any:
        def fail(path: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(path, str | Path) and Path(path).name in names:
                raise OSError(errno.EIO, "the disk fails", str(path))
            return call(path, *arguments, **named)

        return fail

    for name in ("open", "scandir"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    return names
