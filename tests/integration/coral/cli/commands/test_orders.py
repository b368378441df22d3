"""`coral agent` and `coral grading` on runs of real processes: what is asked is done to that agent or grade alone."""

import json
from collections.abc import Callable
from typing import Any

from real_runs import Run, coral_process, tries, wait_until

HANGS = """
import time

def grade(workspace):
    number = float((workspace / "x.txt").read_text())
    time.sleep(600 if number == 1 else 0)
    return number
"""


def ask(run: Run, *words: str, code: int = 0) -> str:
    done = coral_process(*words, "--run", str(run.layout.root))
    assert done.returncode == code, (done.stdout, done.stderr)
    return (done.stdout or done.stderr).strip()


def agents(run: Run) -> dict[str, dict[str, Any]]:
    return {agent["name"]: agent for agent in run.status().get("agents", [])}


def test_an_agent_is_paused_goes_on_is_restarted_and_retired_and_the_other_is_not_disturbed(
    start: Callable[..., Run],
) -> None:
    run = start(["hang"] * 9, overrides=("agents.count=2",))
    wait_until(lambda: [bool(agent["session"]) for agent in agents(run).values()] == [True] * 2, what="both at work")
    before = agents(run)
    assert ask(run, "agent", "pause", "agent-2") == "agent-2 is paused"
    paused = wait_until(lambda: (found := agents(run)["agent-2"])["phase"] == "parked" and found, what="the pause")
    assert paused["reason"]["text"] == "paused by the operator"
    assert "paused by the operator" in ask(run, "status")
    assert ask(run, "agent", "pause", "agent-2", "agent-9", code=1).startswith("coral: cannot find the agent 'agent-9'")
    assert "it is paused already" in ask(run, "agent", "pause", "agent-2", code=1)
    answers = json.loads(ask(run, "agent", "unpause", "--all", "--json", code=1))
    assert [answer["message"] for answer in answers] == ["agent-2 goes on"]
    again = wait_until(lambda: (found := agents(run)["agent-2"])["phase"] == "running" and found, what="its launch")
    assert (again["launch"], again["session"]) == (before["agent-2"]["launch"] + 1, before["agent-2"]["session"])
    assert agents(run)["agent-1"]["launch"] == before["agent-1"]["launch"]
    assert ask(run, "agent", "restart", "agent-1", "--fresh") == "agent-1 begins again in a fresh session"

    def has_begun_again() -> bool:
        found, was = agents(run)["agent-1"], before["agent-1"]
        return bool(found["launch"] > was["launch"] and found["session"] not in (None, was["session"]))

    wait_until(has_begun_again, what="a launch in a session of its own")
    assert ask(run, "agent", "retire", "agent-2") == "agent-2 retires"
    wait_until(lambda: agents(run)["agent-2"]["phase"] == "retired", what="its end")
    run.stop()
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0


def test_grading_is_held_and_released_and_a_grade_is_cancelled(start: Callable[..., Run]) -> None:
    run = start([*tries(1, 2), "hang"], grade=HANGS)
    wait_until(lambda: run.status().get("grading", {}).get("running") == [1], what="the first grade")
    assert ask(run, "grading", "hold") == "no grade begins; submissions wait"
    assert "it is held already" in ask(run, "grading", "hold", code=1)
    assert ask(run, "grading", "cancel", "1") == "#1 is cancelled"
    (first,) = run.wait_for_attempts(1)
    assert (first.verdict, first.reason) == ("void", "the operator cancelled it")
    wait_until(lambda: run.status()["grading"]["queued"] == [2], what="the second submission")
    assert "grading is held: coral grading release" in ask(run, "status")
    assert ask(run, "grading", "release") == "grading goes on"
    assert run.wait_for_attempts(2)[1].score == 2.0
    assert "neither waiting nor being graded" in ask(run, "grading", "cancel", "2", code=1)
