"""Fixtures that several test modules use."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import levels
import pytest
import small_disk
from cases import TIMES
from hypothesis import settings
from real_runs import Run, write_task

from coral.cli import main
from coral.processes.seal import problem
from coral.supervisor.loop import Supervisor
from workspace.seal import Level

HAS_PASSED = pytest.StashKey[bool]()
RUNS = pytest.StashKey[list[Run]]()

# How long an example takes says something of the machine, and nothing of us. Every run tries the same examples, so that
# what fails fails again; whoever wants others, and more of them, says TIMES.
settings.register_profile("timeless", max_examples=40 * TIMES, deadline=None, derandomize=TIMES == 1)
settings.load_profile("timeless")


def pytest_configure() -> None:
    """By nohup, or in the background of a script, we are born deaf, and so would be all that the tests start."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    # What a machine that builds asks of every program's output is no matter of what ours say where nobody asks.
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"):
        os.environ.pop(name, None)
    os.umask(0o022)  # some tests look at their files as somebody else


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test with a disk of its own runs in a namespace of its own; one with users of its own by a Python that they
    reach."""
    if pyfuncitem.get_closest_marker("own_user") is not None:
        if problem(Level.USER):
            levels.run_inside(pyfuncitem)
            return True
        if "tmp_path" in pyfuncitem.funcargs:
            levels.open_to_others(pyfuncitem.funcargs["tmp_path"])  # other users reach it
    if pyfuncitem.get_closest_marker("small_disk") is None or small_disk.is_inside():
        return None
    small_disk.run_inside(pyfuncitem)
    return True


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[small_disk.Disk | None]:
    """A small disk, for a test that is marked with `small_disk`. Outside, where the test does not run, it is none."""
    yield from _mounted(small_disk.Disk, tmp_path)


@pytest.fixture
def quota(tmp_path: Path) -> Iterator[small_disk.Disk | None]:
    """The same with a quota, on a disk that is larger."""
    if reason := small_disk.QuotaDisk.why_not():
        pytest.skip(f"NOT RUN: {reason}")
    yield from _mounted(small_disk.QuotaDisk, tmp_path)


def _mounted(kind: type[small_disk.Disk], folder: Path) -> Iterator[small_disk.Disk | None]:
    if not small_disk.is_inside():
        yield None
        return
    mounted = kind(folder / "disk", 48)
    yield mounted
    mounted.unmount()


@pytest.fixture
def operators_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an operator types in: he is nobody's agent, and hints call our program `coral`, for his PATH leads to it."""
    monkeypatch.delenv("CORAL_AGENT", raising=False)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


@pytest.fixture
def coral(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Our command line without a process of its own: from the words of a command to its exit code and what it said."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Run]]:
    """Start a run of a task with scripted agents, or of the task in a folder. A test that passed ends it in order, and
    nothing may be left of it; whatever is left after a failure is killed."""
    started: list[Run] = request.node.stash.setdefault(RUNS, [])

    def begin(
        script: object,
        *,
        overrides: tuple[str, ...] = (),
        supervise: bool = True,
        runs: Path | None = None,
        **task: Any,
    ) -> Run:
        folder = script if isinstance(script, Path) else write_task(tmp_path / f"task{len(started)}", script, **task)
        run = Run(folder, runs or tmp_path / "runs", overrides)
        started.append(run)
        return run.supervise() if supervise else run

    yield begin
    try:
        for run in started if HAS_PASSED in request.node.stash else ():
            run.close()
    finally:
        for run in started:
            run.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.passed:
        item.stash[HAS_PASSED] = True
    if report.when == "call" and report.failed:
        report.sections += [(f"run {run.layout.root.name}", run.last_lines()) for run in item.stash.get(RUNS, [])]
    return report


@pytest.fixture
def supervisor(start: Callable[..., Run]) -> Iterator[Supervisor]:
    """The supervisor of a run that has not begun, in this process: for tests of its parts."""
    layout = start(["hang"], supervise=False).layout
    made = Supervisor(layout, (layout.private / "seed").read_text().strip())
    yield made
    made.close()
