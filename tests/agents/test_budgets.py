"""A budget of money, held against what the model was really asked: it is overrun by what was in flight, and no more."""

from pathlib import Path

import pytest
import whole_runs
from driven import Drive
from whole_runs import noting

from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind
from coral.journal import fold

pytestmark = pytest.mark.timeout(900)

AGENTS, BUDGET = 2, 1.0
USAGE, PRICES = (100_000, 1000, 0), {"input": 1, "output": 2}
STEP = 0.102  # dollars
# An agent's steps of which nobody has been told yet. Pi tells of each. Codex's record is read at the end of a launch:
# the step of an attempt, and the next one if codex asks for it before the interrupt arrives.
IN_FLIGHT = {"pi": 1, "codex": 2}


@pytest.mark.parametrize("program", IN_FLIGHT, indirect=True)
def test_a_budget_of_money_is_overrun_by_what_was_in_flight_at_most(program: str, drive: Drive, tmp_path: Path) -> None:
    server, desk = drive(program, noting(USAGE))
    chosen = {"model": desk.model} if desk.model else {}
    agents = {"runtime": program, "count": AGENTS, "prices": PRICES, **chosen}
    layout = whole_runs.start(whole_runs.write_task(tmp_path / "task", agents, {"money": BUDGET}), tmp_path)
    run = fold(layout.journal).fleet.run
    assert run.finished == RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.MONEY, BUDGET))
    used = STEP * len(server.turns)
    assert run.spent.money is not None
    assert BUDGET <= run.spent.money <= used + 1e-6
    assert used <= BUDGET + AGENTS * IN_FLIGHT[program] * STEP + 1e-6
