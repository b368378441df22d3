"""Real agent programs against a scripted model, in homes of their own; what is missing is reported as not run."""

import os
import tempfile
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from agent_programs import COMPILED, NODE, PROGRAMS
from driven import Apart, Desk, Drive, Mixed
from endpoints import ENDPOINTS, Endpoint
from model_server import ModelServer, Script

from coral.runtimes.registry import RUNTIMES, find

KEPT = ("PATH", "LANG")  # of the machine's environment; everything else is the user's whom a test plays
ALL_AT_ONCE = ("test_trouble.py", "test_adoption.py")  # each of these tests runs every program for minutes
BEGINNING = 2 / 3  # of all tests, in which the last of those begins


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the longest tests over the beginning: side by side they slow each other, and one that began late would run
    on alone."""
    kinds: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        kinds[item.path.name in ALL_AT_ONCE].append(item)
    places = {
        item: number / len(kind) * (BEGINNING if is_long else 1)
        for is_long, kind in kinds.items()
        for number, item in enumerate(kind)
    }
    items.sort(key=lambda item: places[item])


def missing(name: str) -> str:
    """Why a program cannot be driven here; empty where it can."""
    return PROGRAMS[name].missing or NODE.missing


def demand(request: pytest.FixtureRequest, *names: str) -> None:
    """The test drives these, and is not run where one is missing. The report's last lines go by what is said here."""
    request.node.user_properties += [("program", name) for name in names]
    if lacking := [name for name in names if missing(name)]:
        pytest.skip("; ".join(f"NOT RUN: {name}: {missing(name)}" for name in lacking))


@pytest.fixture(params=[name for name in PROGRAMS if name in RUNTIMES])
def program(request: pytest.FixtureRequest) -> str:
    """Each program in turn."""
    name = str(request.param)
    demand(request, name)
    return name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's home: the programs find nothing of the real one. What they leave in /tmp goes with the test: some
    leave megabytes at each start."""
    for name in set(os.environ) - set(KEPT):
        monkeypatch.delenv(name)
    found = [str(program.commands) for program in (NODE, *PROGRAMS.values())]
    monkeypatch.setenv("PATH", os.pathsep.join((*found, os.environ.get("PATH", os.defpath))))
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("NODE_COMPILE_CACHE", str(COMPILED))  # a fifth of what a start of some of them takes
    # Not below it: the path of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="programs-", ignore_cleanup_errors=True) as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        yield folder


def settle(name: str, server: ModelServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """The user has told this program of the scripted model."""
    endpoint = ENDPOINTS[name](server.url)
    endpoint.furnish(home)
    for variable, value in endpoint.env.items():
        monkeypatch.setenv(variable, value.replace("{home}", str(home)))
    return endpoint


@pytest.fixture
def mixed(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixed]:
    """One scripted model for several programs at once, and what a task says of each."""
    with ExitStack() as closing:

        def begin(names: Sequence[str], script: Script) -> tuple[ModelServer, list[dict[str, object]]]:
            demand(request, *names)
            server = closing.enter_context(ModelServer(script))
            return server, [assignment(name, settle(name, server, home, monkeypatch)) for name in names]

        yield begin


@pytest.fixture
def apart(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Apart]:
    """A scripted model for each program, and what a task says of each."""
    with ExitStack() as closing:

        def begin(
            scripts: Mapping[str, Script], refusing: Container[str]
        ) -> tuple[dict[str, ModelServer], list[dict[str, object]]]:
            demand(request, *scripts)
            servers = {
                name: closing.enter_context(ModelServer(script, refuses=name in refusing))
                for name, script in scripts.items()
            }
            return servers, [assignment(name, settle(name, servers[name], home, monkeypatch)) for name in scripts]

        yield begin


def assignment(name: str, endpoint: Endpoint) -> dict[str, object]:
    """What a task says of a program's agents."""
    said = {"runtime": name, "model": endpoint.model, "options": dict(endpoint.options)}
    return {key: value for key, value in said.items() if value}


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
    """Whoever reads only the end must see which programs were driven, and which were not."""
    told = {name: Counter[str]() for name in PROGRAMS}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name in (value for key, value in getattr(report, "user_properties", ()) if key == "program"):
                told[name][outcome] += 1
    driven = [
        f"{name} {PROGRAMS[name].version} ({', '.join(f'{number} {outcome}' for outcome, number in counts.items())})"
        for name, counts in told.items()
        if counts
    ]
    terminalreporter.write_line(f"agent programs driven: {', '.join(driven) or 'none'}")
    for name in (name for name, counts in told.items() if not counts):
        why = missing(name) or "no test of it was chosen"
        terminalreporter.write_line(f"agent program NOT RUN: {name}: {why}", yellow=True, bold=True)
