"""What of the machine a sealed launch has: its level, its programs, the user's logins."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from real_runs import Run, context_of, write_task

from coral.agent_setup.view import level_for, seal_program, seal_warning
from coral.config.load import load
from coral.errors import CoralError
from coral.processes import seal
from coral.processes.process import Program
from coral.runtimes.model import Command
from workspace.seal import Level


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", ["hang"])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the levels that work."""

    def have(*levels: Level) -> None:
        problems = {level: f"{level} is not installed" for level in Level if level not in (*levels, Level.NONE)}
        monkeypatch.setattr(seal, "problem", lambda level: problems.get(level, ""))

    return have


LEVELS = (Level.BUBBLEWRAP, Level.LANDLOCK)


@pytest.mark.parametrize(
    ("asked", "level"),
    [("best", "bubblewrap"), ("require", "bubblewrap"), ("none", "none"), *((level, level) for level in LEVELS)],
)
def test_the_level_is_the_strongest_unless_another_is_asked_for(
    task: Path, machine: Callable[..., None], asked: str, level: str
) -> None:
    machine(*LEVELS)
    config = load(task, [f"workspace.seal={asked}"])
    assert level_for(config) == level
    assert seal_warning(config) == ""


@pytest.mark.parametrize(
    ("works", "level", "words"),
    [((), Level.NONE, "not sealed"), ((Level.LANDLOCK,), Level.LANDLOCK, "sealed by landlock alone")],
)
def test_best_takes_what_works_and_says_what_is_missing(
    task: Path, machine: Callable[..., None], works: tuple[Level, ...], level: Level, words: str
) -> None:
    machine(*works)
    best = load(task, ["workspace.seal=best"])
    assert level_for(best) is level
    assert seal_warning(best).startswith(f"the agents are {words}, because bubblewrap is not installed: docs/trust.md")
    assert seal_warning(load(task, ["workspace.seal=none"])) == ""


@pytest.mark.parametrize(("works", "asked"), [((), "require"), ((Level.LANDLOCK,), "bubblewrap")])
def test_what_is_required_and_does_not_work_is_refused(
    task: Path, machine: Callable[..., None], works: tuple[Level, ...], asked: str
) -> None:
    machine(*works)
    with pytest.raises(CoralError, match="cannot seal the agents: bubblewrap is not installed"):
        level_for(load(task, [f"workspace.seal={asked}"]))


def test_a_launch_is_given_its_programs_and_logins_and_no_temporary_folder_of_ours(task: Path, tmp_path: Path) -> None:
    data = tmp_path / "task" / "measurements"
    data.mkdir()
    mounts = 'agents.mounts={"data": "measurements"}'
    layout = Run(task, tmp_path / "runs", (mounts, f"workspace.writable=[{tmp_path / 'more'}]")).layout
    program, login = tmp_path / "runs" / "tools" / "bin" / "agent", tmp_path / "login.json"
    for path in (program, login, tmp_path / "more", tmp_path / ".program" / "state"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    env = {"PATH": f"{program.parent}{os.pathsep}/usr/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    plain = Program(
        argv=[str(program), "--model", "m"],
        env=env,
        cwd=layout.clone("agent-1"),
        stdin=layout.prompt("agent-1", 1),
        stdout=layout.output("agent-1", 1),
        stderr=layout.errors("agent-1", 1),
        tag="run/agent-1/1",
    )
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings").symlink_to(login)
    command = Command(
        argv=("agent",),
        links={"login.json": login},
        writes=(tmp_path / ".program",),
        scratch=(tmp_path / "config", tmp_path / "new"),
    )
    context = context_of(layout)
    assert seal_program(context, "agent-1", plain, command) is plain

    sealed = seal_program(replace(context, level=Level.BUBBLEWRAP), "agent-1", plain, command)
    assert sealed.sealed
    assert list(sealed.argv[-3:]) == plain.argv
    assert all(_bound(sealed, "--bind", path) for path in (login, data, tmp_path / "more", tmp_path / ".program"))
    assert _bound(sealed, "--ro-bind", program.parent.parent)
    assert all(_bound(sealed, "--tmpfs", path) for path in (task, tmp_path / "config", tmp_path / "new"))
    assert _bound(sealed, "--ro-bind", tmp_path / "config" / "settings")
    assert "TMPDIR" not in sealed.env
    cache = Path(sealed.env["XDG_CACHE_HOME"])
    assert cache.is_dir()
    assert cache.is_relative_to(layout.state("agent-1"))


def _bound(program: Program, option: str, path: Path) -> bool:
    return (option, str(path)) in pairwise(program.argv)
