"""What real runs spend: every figure that a program told is counted once, also by a supervisor that takes over."""

import json

from real_runs import Run, wait_until

from coral.cli import main
from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind

ONCE = {"use": {"input": 1000, "cached": 5000, "output": 100, "cost": 0.25}}
SUBMIT = [{"edit": {"file": "x.txt", "content": "{n}"}}, {"submit": "try {n}"}]


def spent(run: Run) -> tuple[int, int, int, float | None]:
    found = run.fleet().run.spent
    return found.input, found.cached, found.output, found.money


def test_a_supervisor_that_takes_over_counts_nothing_twice(start, capsys):
    run = start([ONCE, *SUBMIT, ONCE, ONCE, "hang"])
    # The second launch tells two figures, and its supervisor is killed.
    wait_until(lambda: spent(run) == (3000, 15_000, 300, 0.75), what="three figures")
    run.kill()
    run.supervise()
    # At the end at the latest, everything that the launch printed was read again from its beginning.
    run.stop()
    assert spent(run) == (3000, 15_000, 300, 0.75)
    assert run.fleet().agents["agent-1"].spent == run.fleet().run.spent
    assert main(("status", "--json", "--run", str(run.layout.root))) == 0
    status = json.loads(capsys.readouterr().out)
    expected = {"tokens": 3300, "input": 3000, "cached": 15_000, "output": 300, "money": 0.75}
    assert status["spent"] == status["agents"][0]["spent"] == expected
    assert main(("status", "--run", str(run.layout.root))) == 0
    assert "1 attempt · 3.3k tokens, $0.75" in capsys.readouterr().out
    assert "used so far" in run.layout.prompt("agent-1", 2).read_text()
    assert main(("replay", "--run", str(run.layout.root))) == 0


def test_a_budget_of_money_is_announced_and_ends_the_run(start, capsys):
    steps = [{"use": {"input": 1000, "output": 100, "cost": 0.25}}, *SUBMIT]
    run = start([{"repeat": {"steps": steps}}], overrides=("budget.money=2",))
    run.wait_for_end()
    assert run.fleet().run.finished == RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, 2.0))
    # Every launch tells one figure before it is interrupted: no more than that was in flight.
    assert run.fleet().run.spent.money == 2.0
    landing = [prompt for prompt in run.prompts("agent-1") if "## Heartbeat: land" in prompt["text"]]
    assert len(landing) == 1
    assert "$0.25 of $2.00 are left to the fleet" in landing[0]["text"]
    assert main(("log", "--run", str(run.layout.root))) == 0
    assert "the run is over: the budget of $2.00 is used up" in capsys.readouterr().out


def test_a_program_that_knows_a_ceiling_is_started_with_what_is_left(start, tmp_path):
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\necho "$@" > arguments.part && mv arguments.part arguments\nexec sleep 600\n')
    program.chmod(0o755)
    given = ("agents.runtime=claude", f"agents.options={{program: {program}}}", "budget.money=2")
    run = start(["hang"], overrides=(*given, "budget.per_agent.money=1.5"))
    said = run.layout.clone("agent-1") / "arguments"
    wait_until(said.exists, what="the program")
    assert "--max-budget-usd 1.5000" in said.read_text()
