"""Launches on a node, with the bridge and the host of the node beside the run: all but the cluster itself."""

import os
import signal
from pathlib import Path

import pytest
from local_launch_bridge import Keeper
from real_runs import is_alive, tries, wait_until

from attempts.files import parse_object, read_bytes
from coral.cluster.mirror import scan
from workspace.seal import Level

PLACED = ("agents.executor=ray", "agents.ray.address=127.0.0.1:9")
SHARE = """
cat >/dev/null
echo started
test -e .shared/notes/mine.md || echo "of the node" >.shared/notes/mine.md
until test -e .shared/notes/answer.md; do sleep 0.05; done
cat .shared/notes/answer.md
echo 3 >x.txt; ln -sf x.txt link; chmod +x x.txt
coral eval -m three
exec sleep 600
"""


@pytest.fixture
def begin(start, tmp_path):
    """A run whose agents are on a node that has its files in another folder."""
    (tmp_path / "node").mkdir()
    begun = []

    def begin(script, **task):
        run = start(script, supervise=False, overrides=(*PLACED, *task.pop("overrides", ())), **task)
        # The bridge that the run's supervisor starts waits for the lock of this one.
        begun.append((run, Keeper(run.layout.private / "agents", tmp_path / "node")))
        return run.supervise()

    yield begin
    for run, keeper in begun:
        run.close()
        keeper.close()


def wait_for_launch(run, number: int) -> None:
    """Until the program of this launch has printed something."""
    output = run.layout.output("agent-1", number)
    wait_until(lambda: output.exists() and output.read_bytes(), what=f"the output of launch {number}")


def mirror(tmp_path: Path) -> Path:
    (found,) = tmp_path.glob("node/coral-*/agents/*/agent-1/runs/*")
    return found


def on_node(tmp_path: Path) -> list[int]:
    """The processes that the node's program has started, itself included."""
    mark = f"CORAL_RUN={mirror(tmp_path)}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def local_process(run) -> int:
    """The process of the agent's present launch on this machine."""
    spec = str(run.layout.private / "agents" / "agent-1.json").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if spec in path.read_bytes().split(b"\0"):
                return int(path.parent.name)
        except OSError:
            continue
    return 0


def test_an_agent_submits_is_graded_interrupted_and_resumed_in_its_session(begin, tmp_path):
    run = begin([*tries(1, 2), "hang"])
    assert [one.score for one in run.wait_for_attempts(2)] == [1.0, 2.0]
    wait_for_launch(run, 3)
    run.stop()
    assert len({prompt["session"] for prompt in run.prompts("agent-1")}) == 1
    assert len(run.received("agent-1", "reflect")) == 2
    assert [event["ending"] for event in run.events("exited")] == 3 * ["interrupted"]
    assert (
        "#2: 2, new best" in run.layout.errors("agent-1", 2).read_text() + run.layout.output("agent-1", 2).read_text()
    )
    assert (run.layout.clone("agent-1") / "x.txt").read_text() == "2"
    assert on_node(tmp_path) == []
    assert parse_object(read_bytes(run.layout.attempts / "000002.json"))["seal"] == Level.NONE


def test_notes_go_both_ways_and_the_agents_files_come_back_as_they_are(begin, tmp_path):
    run = begin(SHARE)
    wait_until((run.layout.shared / "notes" / "mine.md").exists, what="the agent's note")
    (run.layout.shared / "notes" / "answer.md").write_text("of the run")
    assert run.wait_for_attempts(1)[0].score == 3.0
    run.stop()
    assert "of the run" in run.layout.output("agent-1", 1).read_text()
    here, there = (
        scan(root, ["workspace/agents", "workspace/state", "workspace/shared/notes"])
        for root in (run.layout.root, mirror(tmp_path))
    )
    times = {name: entry[:3] for name, entry in here.items()}
    assert times == {name: entry[:3] for name, entry in there.items()}
    assert (run.layout.clone("agent-1") / "link").is_symlink()


def test_a_supervisor_that_was_killed_takes_the_launch_over(begin):
    run = begin([{"sleep": 2}, *tries(4), "hang"])
    wait_for_launch(run, 1)
    run.kill()
    run.supervise()
    assert run.wait_for_attempts(1)[0].score == 4.0
    wait_for_launch(run, 2)
    (exited,) = run.events("exited")
    assert (exited["launch"], exited["ending"]) == (1, "lost"), "as on this machine: nobody has seen how it ended"


def test_with_its_local_process_all_of_a_launch_ends_and_the_next_goes_on(begin, tmp_path):
    run = begin([*tries(1), {"fork": {}}, "hang"])
    run.wait_for_attempts(1)
    wait_for_launch(run, 2)
    before = wait_until(lambda: on_node(tmp_path))
    os.kill(local_process(run), signal.SIGKILL)
    wait_for_launch(run, 3)
    assert not set(before) & set(on_node(tmp_path))


def test_work_that_a_launch_could_not_send_before_it_was_killed_is_in_the_next_one(begin, tmp_path):
    run = begin("cat >/dev/null; test -e mine && cat mine || echo first; echo work >mine; exec sleep 600")
    wait_for_launch(run, 1)
    wait_until((mirror(tmp_path) / "workspace" / "agents" / "agent-1" / "mine").exists)
    os.kill(local_process(run), signal.SIGKILL)
    wait_for_launch(run, 2)
    assert run.layout.output("agent-1", 2).read_text() == "work\n"
    assert (run.layout.clone("agent-1") / "mine").read_text() == "work\n"


def test_no_key_of_the_user_stays_on_the_disk_of_a_node(begin, tmp_path, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "one-key-of-the-user")
    run = begin("cat >/dev/null; echo ${#MODEL_KEY}; exec sleep 600")
    wait_for_launch(run, 1)
    assert run.layout.output("agent-1", 1).read_text() == "19\n"
    files = [path for path in mirror(tmp_path).parents[1].rglob("*") if path.is_file()]
    assert [path for path in files if b"one-key-of-the-user" in path.read_bytes()] == []


def test_without_its_guard_a_program_does_not_go_on(begin, tmp_path):
    stray = tmp_path / "stray"
    run = begin(f"cat >/dev/null; env -i sleep 600 & echo $! >{stray}; echo here; exec sleep 600")
    wait_for_launch(run, 1)
    before, pid = wait_until(lambda: on_node(tmp_path)), int(stray.read_text())
    guard = parse_object(read_bytes(mirror(tmp_path).parents[1] / "guard.json"))
    os.kill(int(guard["pid"]), signal.SIGKILL)
    wait_until(lambda: run.events("exited"), what="the end of the launch")
    assert not set(before) & set(on_node(tmp_path))
    wait_until(lambda: not is_alive(pid), what="the end of what has no variables")
