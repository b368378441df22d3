"""Agents that join and change on a running fleet of real processes: the others go on as if nothing had happened."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from real_runs import Run, coral_process, tries, wait_until

SHELL = "{start: [/bin/sh, -c, 'echo hello; exec sleep 600']}"

WAITS = """
import pathlib, time

def grade(workspace):
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.01)
    return float((workspace / "x.txt").read_text())
"""


def ask(run: Run, *words: str, code: int = 0) -> str:
    done = coral_process(*words, "--run", str(run.layout.root))
    assert done.returncode == code, (done.stdout, done.stderr)
    return (done.stdout or done.stderr).strip()


def agents(run: Run) -> dict[str, dict[str, Any]]:
    return {agent["name"]: agent for agent in run.status().get("agents", [])}


def launches(run: Run, agent: str) -> int:
    return len([line for line in run.events("spawned") if line["agent"] == agent])


def is_at_work(run: Run, agent: str, launch: int = 1) -> bool:
    """Whether it is in a launch from this number on, and has printed something in it."""
    found = agents(run).get(agent, {})
    beat = found.get("beat") or {"phase": "starting"}
    return found.get("phase") == "running" and found["launch"] >= launch and beat["phase"] != "starting"


@pytest.mark.slow
def test_an_agent_joins_is_adopted_after_a_kill_and_moves(start: Callable[..., Run]) -> None:
    run = start([*tries(1), "hang", "hang", "hang"], overrides=("agents.count=1", "run.max_defer=1", "budget.hours=6"))
    wait_until(lambda: is_at_work(run, "agent-1", 2), what="the launch after its first attempt")
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
    assert "hello" in ask(run, "transcript", "shell", "--launch", "2")
    lines = ask(run, "transcript", "shell", "--launch", "3", "--json").splitlines()
    assert json.loads(lines[1])["kind"] == "step"  # as no other runtime reads it
    ask(run, "agent", "retire", "shell")
    wait_until(lambda: agents(run)["shell"]["phase"] == "retired", what="its end")
    run.stop()
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0


def interrupted(run: Run, agent: str) -> int:
    return len([line for line in run.events("interrupted") if line["agent"] == agent])


@pytest.mark.slow
def test_every_order_on_one_fleet_concerns_whom_it_names_and_nobody_else(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.touch()
    grade = WAITS.format(go=str(go))
    run = start(["hang"] * 9, grade=grade, overrides=("agents.count=3", "run.max_defer=0.5"), supervise=False)
    go.unlink()  # it was there for the seed
    run.supervise()
    wait_until(lambda: all(is_at_work(run, f"agent-{number}") for number in (1, 2, 3)), what="all at work")

    asked = coral_process("ask", "May I use the network?", cwd=run.layout.clone("agent-2"))
    assert "question 1 is with the operator" in asked.stdout, asked.stderr
    wait_until(lambda: run.status().get("questions"), what="the question")
    assert "May I use the network?" in ask(run, "status")
    ask(run, "answer", "1", "Yes, it is free.")
    wait_until(lambda: is_at_work(run, "agent-2", 2), what="the answer")
    assert "The answer: Yes, it is free." in run.prompts("agent-2")[-1]["text"]

    ask(run, "grading", "hold")
    (run.layout.clone("agent-3") / "x.txt").write_text("5")
    submitted = coral_process("eval", "-m", "five", "--no-wait", cwd=run.layout.clone("agent-3"))
    assert submitted.returncode == 0, submitted.stderr
    wait_until(lambda: run.status().get("grading", {}).get("queued") == [1], what="the submission")
    ask(run, "grading", "release")
    wait_until(lambda: run.status().get("grading", {}).get("running") == [1], what="its grade")
    ask(run, "grading", "cancel", "1")
    assert run.wait_for_attempts(1)[0].verdict == "void"

    ask(run, "agent", "pause", "agent-2")
    wait_until(lambda: agents(run)["agent-2"]["phase"] == "parked", what="the pause")
    assert "agent-4 is being prepared" in ask(run, "agent", "add", "--role", "Draft.")
    wait_until(lambda: is_at_work(run, "agent-4"), what="the new agent")
    ask(run, "agent", "move", "agent-4", "--role", "Review.")
    wait_until(lambda: is_at_work(run, "agent-4", 2), what="the move")
    assert "Your role is now: Review." in run.prompts("agent-4")[-1]["text"]
    assert "Review." in run.layout.instructions("agent-4").read_text()
    ask(run, "agent", "move", "agent-4", "--role", "Draft.")
    wait_until(lambda: is_at_work(run, "agent-4", 3), what="the move back")
    assert "Draft." in (run.layout.shared / "roles" / "agent-4.md").read_text()
    ask(run, "agent", "unpause", "agent-2")
    wait_until(lambda: is_at_work(run, "agent-2", 3), what="its next launch")
    assert "The operator has added agent-4" in run.prompts("agent-2")[-1]["text"]
    ask(run, "agent", "retire", "agent-4")
    wait_until(lambda: agents(run)["agent-4"]["phase"] == "retired", what="its end")

    counts = {name: (launches(run, name), interrupted(run, name)) for name in agents(run)}
    assert counts == {"agent-1": (1, 0), "agent-2": (3, 2), "agent-3": (1, 0), "agent-4": (3, 3)}
    run.stop()
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0
