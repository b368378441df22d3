"""Holds the unit tests to their rule: none starts a process, a git least of all."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system"}
started: list[str] | None = None  # by the test that runs; None between tests, for pytest's own sake


def note_start(event: str, arguments: tuple[Any, ...]) -> None:
    if started is not None and event in STARTS:
        started.append(f"{event}{arguments[:2]}")


sys.addaudithook(note_start)  # sees every start in this interpreter; none can be removed, and each costs little


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    global started
    started = []
    try:
        yield
    finally:
        found, started = started, None
    assert not found, f"a unit test starts no process: {found}"
