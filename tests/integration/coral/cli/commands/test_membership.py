"""Agents that join and change on a running fleet of real processes: the others go on as if nothing had happened."""

from collections.abc import Callable
from typing import Any

from real_runs import Run, coral_process, tries, wait_until

SHELL = "{start: [/bin/sh, -c, 'echo hello; exec sleep 600']}"


def ask(run: Run, *words: str, code: int = 0) -> str:
    done = coral_process(*words, "--run", str(run.layout.root))
    assert done.returncode == code, (done.stdout, done.stderr)
    return (done.stdout or done.stderr).strip()


def agents(run: Run) -> dict[str, dict[str, Any]]:
    return {agent["name"]: agent for agent in run.status().get("agents", [])}


def launches(run: Run, agent: str) -> int:
    return len([line for line in run.events("spawned") if line["agent"] == agent])


def is_at_work(run: Run, agent: str, launch: int = 1) -> bool:
    found = agents(run).get(agent, {})
    return found.get("phase") == "running" and found["launch"] >= launch and found["beat"] is not None


def test_an_agent_joins_is_adopted_after_a_kill_and_moves(start: Callable[..., Run]) -> None:
    run = start([*tries(1), "hang", "hang", "hang"], overrides=("agents.count=1", "run.max_defer=1", "budget.hours=6"))
    wait_until(lambda: run.attempts() and is_at_work(run, "agent-1"), what="the first agent")
    assert "there is none of that name" in ask(run, "agent", "add", "--runtime", "nothing", code=1)
    assert "is no name" in ask(run, "agent", "add", "--name", "No Name", code=1)
    assert "start is empty" in ask(run, "agent", "add", "--runtime", "command", code=1)
    before = agents(run)["agent-1"]
    assert "shell is being prepared" in ask(
        run, "agent", "add", "--name", "shell", "--runtime", "command", "--options", SHELL, "--role", "Wait."
    )
    wait_until(lambda: is_at_work(run, "shell"), what="the new agent")
    assert "Wait." in (run.layout.clone("shell") / "AGENTS.md").read_text()
    assert (run.layout.shared / "roles" / "shell.md").is_file()
    run.kill()
    run.supervise()
    assert run.ask({"type": "hold_grading"})["ok"]  # another supervisor has begun
    assert agents(run)["agent-1"]["launch"] == before["launch"]
    assert (agents(run)["shell"]["runtime"], launches(run, "shell")) == ("command", 1)
    run.stop()
    run.supervise()
    wait_until(lambda: is_at_work(run, "shell", 2) and is_at_work(run, "agent-1", before["launch"] + 1), what="both")
    assert "The operator has added shell to the fleet: it is driven by command." in run.prompts("agent-1")[-1]["text"]

    assert "is being prepared for the move" in ask(run, "agent", "move", "shell", "--runtime", "scripted")
    wait_until(lambda: is_at_work(run, "shell", 3), what="the move")
    told = run.prompts("shell")[0]["text"]
    assert "you are driven by scripted now (before: command)" in told
    assert "nothing is to change" in ask(run, "agent", "move", "shell", code=1)
    ask(run, "agent", "move", "shell", "--runtime", "command", "--options", SHELL)
    wait_until(lambda: is_at_work(run, "shell", 4) and agents(run)["shell"]["runtime"] == "command", what="the undoing")
    assert launches(run, "agent-1") == before["launch"] + 1
    ask(run, "agent", "retire", "shell")
    wait_until(lambda: agents(run)["shell"]["phase"] == "retired", what="its end")
    run.stop()
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0
