"""`coral agent` and `coral grading` on runs of real processes: what is asked is done to that agent or grade alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from real_runs import Run, coral_process, tries, wait_until

HANGS = """
import time

def grade(workspace):
    number = float((workspace / "x.txt").read_text())
    time.sleep(600 if number == 1 else 0)
    return number
"""


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


def limits_of(run: Run) -> dict[str, float]:
    return {budget["key"]: budget["limit"] for budget in run.status().get("budgets", [])}


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


def test_a_budget_is_set_undone_and_kept_and_a_stop_waits_for_the_grades(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.touch()
    run = start(
        [*tries(1, 2), "hang"],
        overrides=("agents.count=1", "budget.hours=6"),
        grade=WAITS.format(go=str(go)),
        supervise=False,
    )
    go.unlink()  # it was there for the seed
    run.supervise()
    wait_until(lambda: run.status().get("grading", {}).get("running") == [1], what="the first grade")
    assert ask(run, "set", "budget.hours=12") == "budget.hours is 12 (it was 6)"
    wait_until(lambda: limits_of(run) == {"hours": 12}, what="the new budget")
    assert "of 12" in ask(run, "status")
    assert "it is no number" in ask(run, "set", "budget.hours=1e306", code=1)  # as many seconds are infinite
    assert "would end at once" in ask(run, "set", "budget.hours=0.00001", code=1)
    assert ask(run, "set", "budget.attempts=40") == "budget.attempts is 40 (it was without limit)"
    assert ask(run, "set", "budget.attempts=task") == "budget.attempts is without limit (it was 40)"
    assert "cannot set agents.count" in ask(run, "set", "agents.count=4", code=1)
    assert coral_process("stop", "--after-grades", "--timeout", "0.5", "--run", str(run.layout.root)).returncode == 2
    wait_until(lambda: agents(run)["agent-1"]["phase"] == "waiting", what="the agent's end")
    assert (run.status()["grading"]["running"], run.status()["state"]) == ([1], "stopping")
    go.touch()
    run.wait_for_end()
    assert run.wait_for_attempts(1)[0].score == 1.0
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0


def test_where_the_supervisor_was_killed_nobody_grades_and_a_stop_after_the_grades_says_what_to_do(
    start: Callable[..., Run],
) -> None:
    run = start(["hang"], overrides=("agents.count=1",))
    wait_until(lambda: agents(run).get("agent-1", {}).get("phase") == "running", what="the agent")
    run.kill()
    root = str(run.layout.root)
    asked = coral_process("stop", "--after-grades", "--run", root)
    assert (asked.returncode, asked.stdout) == (1, "")
    said, hint = asked.stderr.splitlines()
    assert said == f"coral: cannot stop {run.layout.root.name} after its grades: nobody supervises it"
    resume, stop = hint.split("; ")
    assert ("coral resume" in resume, "coral stop" in stop) == (True, True)
    assert (resume.endswith("grades what waits"), stop.endswith("ends its processes")) == (True, True)
    assert coral_process("stop", "--run", root).returncode == 0
