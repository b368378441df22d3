"""Fixtures that several test modules use."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from real_runs import Run, write_task


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start a run of a task with scripted agents; whatever is left of it is killed at the end."""
    started: list[Run] = []

    def begin(script: object, *, overrides: tuple[str, ...] = (), supervise: bool = True, **task: Any) -> Run:
        folder = write_task(tmp_path / f"task{len(started)}", script, **task)
        run = Run(folder, tmp_path / "runs", overrides)
        started.append(run)
        return run.supervise() if supervise else run

    yield begin
    for run in started:
        run.end()
