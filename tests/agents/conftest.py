"""Real agent programs against a scripted model, in homes of their own; what is missing is reported as not run."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from agent_programs import NODE, PROGRAMS
from driven import Desk, Drive, Mixed
from endpoints import ENDPOINTS, Endpoint
from model_server import ModelServer, Script

from coral.runtimes import RUNTIMES, find

KEPT = ("PATH", "LANG", "TMPDIR")  # of the machine's environment; everything else is the user's whom a test plays


@pytest.fixture(params=[name for name in PROGRAMS if name in RUNTIMES])
def program(request: pytest.FixtureRequest) -> str:
    """Each program in turn."""
    name = str(request.param)
    if reason := PROGRAMS[name].missing or NODE.missing:
        pytest.skip(f"NOT RUN: {name}: {reason}")
    return name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home: the programs find nothing of the real one."""
    for name in set(os.environ) - set(KEPT):
        monkeypatch.delenv(name)
    found = [str(each.commands) for each in (NODE, *PROGRAMS.values())]
    monkeypatch.setenv("PATH", os.pathsep.join((*found, os.environ.get("PATH", os.defpath))))
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def settle(name: str, server: ModelServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """The user has told this program of the scripted model."""
    endpoint = ENDPOINTS[name](server.url)
    endpoint.furnish(home)
    for variable, value in endpoint.env.items():
        monkeypatch.setenv(variable, value)
    return endpoint


@pytest.fixture
def mixed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixed]:
    """One scripted model for several programs at once, and what a task says of each."""
    with ExitStack() as closing:

        def begin(names: Sequence[str], script: Script) -> tuple[ModelServer, list[dict[str, object]]]:
            server = closing.enter_context(ModelServer(script))
            settled = {name: settle(name, server, home, monkeypatch) for name in names}
            parts = [
                {"runtime": name, "model": each.model, "options": dict(each.options)} for name, each in settled.items()
            ]
            return server, [{key: value for key, value in part.items() if value} for part in parts]

        yield begin


@pytest.fixture
def drive(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    """A scripted model, and a desk of the program that talks to it."""
    with ExitStack() as closing:

        def begin(name: str, script: Script = (), **options: object) -> tuple[ModelServer, Desk]:
            server = closing.enter_context(ModelServer(script))
            endpoint = settle(name, server, home, monkeypatch)
            runtime = find(name, {**endpoint.options, **options})
            assert runtime.check() == []
            desk = Desk(tmp_path, runtime, endpoint.model)
            closing.callback(desk.clean)
            return server, desk

        yield begin


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Whoever reads only the end must see which programs were not driven."""
    missing = [name for name, each in PROGRAMS.items() if name not in RUNTIMES or each.missing or NODE.missing]
    driven = [name for name in PROGRAMS if name not in missing]
    terminalreporter.write_line(f"agent programs driven: {', '.join(driven) or 'none'}")
    if missing:
        terminalreporter.write_line(f"agent programs NOT RUN: {', '.join(missing)}", yellow=True, bold=True)
