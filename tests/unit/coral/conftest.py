"""A run with a history, seen by its operator, and commands as he sees them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sample import make_run, write_heartbeats, write_status

from workspace.layout import Layout


@pytest.fixture
def layout(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A run of five attempts of two agents, below the current directory, on a terminal 150 wide."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)
    made = make_run(tmp_path / "runs")
    write_status(made)
    write_heartbeats(made)
    return made


@pytest.fixture
def shown(coral: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """What a command shows, without blanks at the ends of lines: its output, or the message with which it fails."""

    def run(*words: str, code: int = 0) -> str:
        ended, out, err = coral(*words)
        assert ended == code, err
        return "\n".join(line.rstrip() for line in (err if code and err else out).splitlines())

    return run
