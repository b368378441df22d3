"""Pipes in the place of files that Coral reads hold nobody up. Opened plainly, a pipe blocks until somebody writes."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from real_runs import Run, context_of, tries, write_task

from coral.agent_setup.clone import create_knowledge
from coral.fleet.actions import Notify
from coral.fleet.events import Moment
from coral.runs.detach import detach
from coral.views.report import Report

SECONDS = 120.0  # far more than a command takes
COMMANDS = ("status", "log", "show 1", "runs", "heartbeat", "notes", "skills", "transcript agent-1", "stop")
COMMANDS += ("lineage", "report -o report.html --force", "plot -o curve.svg --force")


class BlockedError(BaseException):
    """Not an Exception, so that nothing takes it for trouble with a file."""


@contextmanager
def deadline() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise BlockedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def pipes_at(paths: Sequence[Path]) -> Iterator[None]:
    assert paths
    kept = {path: path.with_name(f".{path.name}.kept") for path in paths}
    for path, aside in kept.items():
        if path.exists():
            path.rename(aside)
        os.mkfifo(path)
    try:
        yield
    finally:
        for path, aside in kept.items():
            path.unlink(missing_ok=True)
            if aside.exists():
                aside.rename(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("finished")
    run = Run(write_task(folder / "task", tries(1, 2)), folder / "runs").supervise()
    try:
        run.wait_for_attempts(2)
        run.stop()
        yield run
    finally:
        run.end()


@pytest.mark.parametrize(
    "place",
    [
        "attempts/*.json",
        "attempts/index.sqlite",
        "heartbeats/*.yaml",
        "logs/events.jsonl",
        "logs/*/*",
        "requests/*/*/*.json",
        "status.json",
        "private/*",
        "private/journal/*",
        "workspace/shared/HEARTBEAT.md",
    ],
)
def test_no_command_waits_for_a_pipe(finished: Run, coral, monkeypatch, place: str) -> None:
    monkeypatch.chdir(finished.layout.root)
    with pipes_at([path for path in finished.layout.root.glob(place) if path.is_file()]):
        for command in COMMANDS:
            with deadline():
                code, _, told = coral(*command.split())
            assert code in (0, 1), (command, told)


@pytest.mark.parametrize("name", ["index", "coral.lock", "coral-diff-index"])
def test_no_command_in_a_clone_waits_for_a_pipe(finished: Run, coral, monkeypatch, name: str) -> None:
    clone = finished.layout.clone("agent-1")
    monkeypatch.chdir(clone)
    with pipes_at([clone / ".git" / name]), deadline():
        code, _, told = coral("diff")
    assert code in (0, 1), told


def test_an_alert_of_the_supervisor_before_is_looked_for_without_waiting(finished: Run) -> None:
    layout = finished.layout
    report = Report(context_of(layout), "")
    with pipes_at([layout.events]), deadline():
        report.alert(Moment(run_time=1.0, wall_time=""), Notify(id="a1", text="it happened", repeat=True))
        assert "it happened" in layout.events.read_text()


def test_a_checklist_is_read_without_waiting(finished: Run) -> None:
    layout = finished.layout
    (layout.shared / "HEARTBEAT.md").unlink(missing_ok=True)
    with pipes_at([layout.checklist]), deadline():
        create_knowledge(context_of(layout), "agent-1")
    assert (layout.shared / "HEARTBEAT.md").is_file()


def test_a_supervisor_is_started_in_the_background_all_the_same(start, coral) -> None:
    run = start(["hang"], supervise=False)
    for path in (run.layout.status, run.layout.log):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    with deadline():
        detach(run.layout)
    assert coral("stop", "--run", str(run.layout.root))[0] == 0
