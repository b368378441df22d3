"""What a budget can buy, told before it is spent: one line, and no start is refused for it."""

from pathlib import Path

import pytest
from real_runs import Run, tries, write_task

from attempts.store import Store
from coral.agent_setup.prices import budget_concerns, budget_warning
from coral.config.load import Config, load

HEAD = "task: {name: t, description: d}\ngrader: {command: 'true', slots: 2}\n"
CLAUDE = "agents: {runtime: claude, count: 4}\n"
PRICED = "agents: {runtime: codex, count: 4, prices: {input: 10, cached: 1, output: 50}}\n"
MIXED = "agents: {assignments: [{runtime: claude, prices: {input: 30, output: 90}}, {runtime: native, count: 3}]}\n"


def config(folder: Path, text: str) -> Config:
    (folder / "seed").mkdir()
    (folder / "task.yaml").write_text(HEAD + text)
    return load(folder)


@pytest.mark.parametrize(
    ("text", "grade", "told"),
    [
        ("agents: {count: 4}\nbudget: {attempts: 3}\n", 1.0, "attempts=3 is less than one for each of 4 agents"),
        ("agents: {count: 4}\nbudget: {attempts: 4}\n", 1.0, ""),
        ("budget: {hours: 0.05}\n", 200.0, "enough for about 1 attempt, as grading the seed took 3 min 20 s"),
        ("budget: {hours: 0.05}\n", 130.0, "enough for about 2 attempts, as grading the seed took 2 min 10 s"),
        ("budget: {hours: 0.05}\n", 720.0, "hours=0.05 is enough for less than one attempt, as"),
        ("budget: {hours: 0.0001}\n", 0.3, "enough for about 2 attempts, as grading the seed took 0.3 s"),
        ("budget: {hours: 0.05}\n", 120.0, ""),
        ("agents: {count: 4}\nbudget: {hours: 0.05}\n", 120.0, "hours=0.05 is enough for about 3 attempts"),
        ("budget: {hours: 0.05}\n", 0.0, ""),
        (CLAUDE + "budget: {money: 1}\n", 1.0, "budget.money=1 is enough for about 3 attempts, at a rough $0.27 each"),
        (CLAUDE + "budget: {money: 2}\n", 1.0, ""),
        (PRICED + "budget: {money: 1}\n", 1.0, "budget.money=1 is enough for about 1 attempt, at a rough $0.9 each"),
        (MIXED + "budget: {money: 1}\n", 1.0, "enough for less than one attempt, at a rough $10.44"),
        ("budget: {money: 0.01}\n", 1.0, ""),
        (CLAUDE + "budget: {tokens: 100_000}\n", 1.0, "budget.tokens=100000 is enough for about 2 attempts, at a"),
        (CLAUDE + "budget: {tokens: 150_000}\n", 1.0, ""),
        (CLAUDE + "budget: {per_agent: {money: 0.5}}\n", 1.0, "budget.per_agent.money=0.5 is enough for about 1 at"),
        (CLAUDE + "budget: {per_agent: {tokens: 9}}\n", 1.0, "per_agent.tokens=9 is enough for less than one attempt"),
        (CLAUDE + "budget: {per_agent: {money: 0.9, tokens: 110_000}}\n", 1.0, ""),
        ("", 1.0, ""),
    ],
)  # fmt: skip
def test_what_a_budget_may_not_be_enough_for(text: str, grade: float, told: str, tmp_path) -> None:
    found = list(budget_concerns(config(tmp_path, text), grade))
    assert len(found) == (1 if told else 0)
    assert told in "".join(found)


def test_all_of_it_is_one_line(tmp_path) -> None:
    tight = config(tmp_path, CLAUDE + "budget: {attempts: 1, money: 0.1}\n")
    assert budget_warning(tight, 1.0) == (
        "the budget may be too small: budget.attempts=1 is less than one for each of 4 agents; "
        "budget.money=0.1 is enough for less than one attempt, at a rough $0.27 each"
    )


def test_the_record_of_the_seed_says_how_long_its_grade_took(tmp_path) -> None:
    slow = "import time\n\n\ndef grade(workspace):\n    time.sleep(0.3)\n    return 1.0\n"
    run = Run(write_task(tmp_path / "task", tries(1), grade=slow), tmp_path / "runs")
    assert Store(run.layout.attempts).read(0).seconds >= 0.3
