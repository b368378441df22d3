"""What of the machine a sealed launch has: its level, its programs, the user's logins."""

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from real_runs import Run, context_of, write_task

from coral.agent_setup.own_user import sealed_for
from coral.agent_setup.roster import Roster
from coral.agent_setup.view import seal_program
from coral.config.load import load
from coral.processes.process import Program
from coral.runtimes.model import Command
from workspace.seal import Level


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", ["hang"])


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
        scratch={".config": tmp_path / "config", ".new": tmp_path / "new"},
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


def test_a_task_whose_grades_are_on_a_cluster_asks_no_seal_for_them(task: Path, tmp_path: Path) -> None:
    config = load(task, ("workspace.seal=best", "grader.executor=ray", "grader.ray.address=127.0.0.1:9"))
    level, sealed = sealed_for(config, Roster(config), tmp_path / "runs")
    assert level in Level
    assert sealed.workspace.seal == "best", "graders of the cluster are refused a level by name"
