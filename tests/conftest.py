"""Fixtures that several test modules use."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_disk
from hypothesis import settings
from real_runs import Run, write_task

# How long an example takes says something of the machine, and nothing of us. Every run tries the same examples, so that
# what fails fails again; whoever wants others, and more of them, says TIMES.
settings.register_profile("timeless", deadline=None, derandomize=os.environ.get("TIMES", "1") == "1")
settings.load_profile("timeless")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test with a disk of its own runs in a namespace of its own."""
    if pyfuncitem.get_closest_marker("small_disk") is None or small_disk.is_inside():
        return None
    small_disk.run_inside(pyfuncitem)
    return True


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[small_disk.Disk | None]:
    """A small disk, for a test that is marked with `small_disk`. Outside, where the test does not run, it is none."""
    if not small_disk.is_inside():
        yield None
        return
    mounted = small_disk.Disk(tmp_path / "disk", 48)
    yield mounted
    mounted.unmount()


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
