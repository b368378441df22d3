"""`coral chat`: a person is the outer loop of an agent, of a task without a run and of a run that stands still."""

import json
from pathlib import Path

import pytest
from llm_agent import base_url, call
from model_server import ModelServer, Step
from native_task import write_task
from real_runs import coral_process

from coral.config.load import load
from coral.native.llm.conversation import LlmMemory
from coral.native.snapshots import Snapshots, newest_session
from coral.runs.create import create_run

OPTIONS = "agents.options={{brain: llm, base_url: '{url}', max_steps: 2}}"


def overrides(server: ModelServer) -> list[str]:
    return ["agents.runtime=native", "agents.model=m", OPTIONS.format(url=base_url(server, "chat"))]


def test_one_word_to_an_agent_of_a_task(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    script = [Step(calls=[call("check")]), Step(calls=[call("send_message", False, message="It scores high.")])]
    with ModelServer(script) as server:
        done = coral_process("chat", str(task), *overrides(server), "-m", "how good is it?", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == "  > check"
        assert lines[1].startswith("  < ")
        assert "check.py:check" in lines[1]
        assert lines[2:] == ["It scores high."]  # once, and not as a call
        assert "how good is it?" in server.turns[0].texts[-1]
        assert "check.py:check" in "".join(server.turns[1].texts)
        printed = coral_process("chat", str(task), *overrides(server), "-m", "again?", "--json", cwd=tmp_path)
        assert all(json.loads(line)["type"] for line in printed.stdout.splitlines())
    assert not list(tmp_path.glob("runs*"))


def test_an_agent_of_a_run_remembers_and_a_supervised_one_is_left_alone(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    script = [
        Step(calls=[call("core_memory_append", False, block="learned", content="The code word is heliotrope.")]),
        Step(calls=[call("list_files")], times=2),
    ]
    with ModelServer(script) as server:
        layout = create_run(load(task, [*overrides(server), "budget.attempts=1"]), tmp_path / "runs", lambda _: None)
        where = ("--run", str(layout.root))
        assert coral_process("chat", "agent-1", *where, "-m", "remember").returncode == 0
        done = coral_process("chat", "agent-1", *where, "-m", "what is it?")
        assert "2 steps in a row; say something, and it goes on" in done.stdout
        assert "heliotrope" in server.turns[-1].texts[1]
        # Its memory speaks of an attempt that is not there, as after the run was restored from an older copy.
        snapshots = Snapshots.resume(layout.state("agent-1"), newest_session(layout.state("agent-1")), LlmMemory)
        assert snapshots is not None
        snapshots.memory = snapshots.memory.new_attempt(7, "abc")
        snapshots.save()
        restored = coral_process("chat", "agent-1", *where, "-m", "and now?")
        assert "its newest memory was set aside: #7 is not there" in restored.stdout
        assert "Your newest memory was set aside: #7 is not there." in "".join(server.turns[-1].texts)
        unknown = coral_process("chat", "agent-9", *where, "-m", "x")
        assert (unknown.returncode, "this run has no agent 'agent-9'" in unknown.stderr) == (1, True)


@pytest.mark.parametrize("runtime", ["native", "scripted"])
def test_an_agent_without_a_model_has_nothing_to_say(tmp_path: Path, runtime: str) -> None:
    task = write_task(tmp_path / "task", extra="")
    options = ["agents.options={script: [hang]}"] if runtime == "scripted" else []
    done = coral_process("chat", str(task), f"agents.runtime={runtime}", *options, "-m", "x", cwd=tmp_path)
    assert done.returncode == 1
    assert f"agent-1 is driven by {runtime} and has no such loop" in done.stderr
