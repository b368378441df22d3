"""Keys on a real terminal: read at once, and the terminal is as it was afterwards."""

import os
import pty
import termios
import threading
from pathlib import Path

import pytest

from coral.cli.ui import keys as module
from coral.cli.ui.keys import keys


def test_a_key_is_read_without_a_newline(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    try:
        monkeypatch.setattr(module, "_terminal", lambda: theirs)
        before = termios.tcgetattr(theirs)
        with keys() as pressed:
            assert pressed(0.0) == ""
            threading.Timer(0.05, os.write, (ours, b"v")).start()
            assert pressed(20.0) == "v"
            assert termios.tcgetattr(theirs) != before
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)


def test_without_a_terminal_it_only_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "input").open("w+") as file:
        monkeypatch.setattr("sys.stdin", file)
        with keys() as pressed:
            assert pressed(0.01) == ""
