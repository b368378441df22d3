"""Agents on a cluster, as this machine keeps account of their launches."""

from pathlib import Path

import pytest
from real_runs import Run, context_of, write_task

from coral.agent_setup.clone import renew_instructions, restore_clone
from coral.agent_setup.launch import program_of
from coral.agent_setup.remote import was_lost
from coral.fleet.actions import Spawn
from coral.fleet.agent_state import Agent
from coral.fleet.reasons import START
from coral.fleet.run_state import Fleet

PLACED = ("agents.executor=ray", "agents.ray.address=127.0.0.1:9")
FLEET = Fleet(agents={"agent-1": Agent(name="agent-1")})
SPAWN = Spawn(agent="agent-1", launch=2, session=None, messages=(), last_result_seen=0, reason=START)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", ["hang"])


def kept(run: Run) -> Path:
    """The file that says on which node the agent's last launch has begun."""
    path = run.layout.private / "agents" / "agent-1.node.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"node": "n", "launch": 1}')
    return path


def test_what_is_written_into_a_clone_here_is_not_undone_by_its_mirror(task: Path, tmp_path: Path) -> None:
    run = Run(task, tmp_path / "runs", PLACED)
    context, path = context_of(run.layout), kept(run)
    renew_instructions(context, "agent-1", run.layout.seed_commit.read_text().strip())
    assert not path.exists()


@pytest.mark.parametrize("name", [".shared", "AGENTS.md"])
def test_what_is_put_back_into_a_clone_is_not_undone_by_its_mirror(task: Path, tmp_path: Path, name: str) -> None:
    run = Run(task, tmp_path / "runs", PLACED)
    context, path = context_of(run.layout), kept(run)
    restore_clone(context, "agent-1")
    assert path.exists(), "there was nothing to put back"
    (run.layout.clone("agent-1") / name).unlink()
    restore_clone(context, "agent-1")
    assert not path.exists()


@pytest.mark.parametrize(("overrides", "stays"), [(PLACED, True), ((), False)])
def test_a_launch_on_this_machine_makes_the_mirror_old(
    task: Path, tmp_path: Path, overrides: tuple[str, ...], stays: bool
) -> None:
    run = Run(task, tmp_path / "runs", overrides)
    path = kept(run)
    program_of(context_of(run.layout), FLEET, "agent-1", SPAWN, "tag")
    assert path.exists() == stays


def test_that_a_launch_was_lost_is_said_of_it_alone(task: Path, tmp_path: Path) -> None:
    run = Run(task, tmp_path / "runs", PLACED)
    kept(run).with_name("agent-1.lost").write_text("2")
    assert [was_lost(run.layout, "agent-1", launch) for launch in (1, 2, 3)] == [False, True, False]
    program_of(context_of(run.layout), FLEET, "agent-1", SPAWN, "tag")
    assert not was_lost(run.layout, "agent-1", 2), "the numbers of launches begin anew where a journal was rolled back"
