"""The last synthesis, as transcripts: one agent is asked for it before the budget is gone, and nothing waits for it."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Spent
from coral.fleet.events import Ending
from coral.fleet.rules import Rules


def rules(**budget: float) -> Rules:
    return replace(QUIET_RULES, **budget)  # type: ignore[arg-type]


def spend(stage: Stage, agent: str, money: float) -> on.Used:
    return on.Used(agent=agent, launch=stage[agent].launch, session="", figure=Spent(money=money))


def concluders(stage: Stage) -> list[str]:
    return [name for name in stage.fleet.agents if any("conclude" in owed for owed in stage.owed(name))]


def test_one_agent_is_asked_when_95_percent_of_the_budget_is_used() -> None:
    stage = Stage(3, rules(budget_seconds=100.0))
    stage.until(94.9)
    assert concluders(stage) == []
    stage.until(95)
    assert concluders(stage) == ["ann"]
    stage.resumed("ann", 96)
    stage.until(99.9)
    assert (concluders(stage), stage.fleet.run.concluder) == ([], "ann")
    assert stage.until(100)[-1].startswith("100 interrupt")


@pytest.mark.parametrize(("agents", "budget", "asked_after"), [(1, 40, 38), (3, 40, 37), (3, 10, 8), (2, 5, 4)])
def test_attempts_that_may_be_in_hand_are_left_out_of_what_is_left(agents: int, budget: int, asked_after: int) -> None:
    stage = Stage(agents, rules(budget_attempts=budget))
    for number in range(1, asked_after + 1):
        assert concluders(stage) == []
        stage.tried(float(number + 1) / 100, "ann", float(number))
    assert stage.fleet.run.concluder


def test_of_a_budget_that_small_nothing_is_left_to_conclude_with() -> None:
    stage = Stage(4, rules(budget_attempts=3))
    assert (stage.tried(2, "ann", 1.0), concluders(stage)) == (["publish #1 new best 1"], [])


def test_who_waits_for_a_grade_is_not_asked_where_another_one_can_be() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.in_grading(2, "ann", wait=500)
    stage.at(3, spend(stage, "ben", 9.6))
    assert concluders(stage) == ["ben"]


def test_who_is_at_work_is_asked_before_one_that_waits_to_start() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.at(2, stage.exited("ann", Ending.CRASHED, "no memory"))
    stage.at(3, spend(stage, "ben", 9.6))
    assert concluders(stage) == ["ben"]


def test_who_has_heard_of_it_is_done_with_it_whatever_else_is_pending() -> None:
    stage = Stage(3, rules(budget_money=10.0))
    stage.at(2, *(stage.heard(name, busy="tool") for name in ("ann", "ben", "cid")))
    stage.at(3, spend(stage, "ben", 9.6))
    assert concluders(stage) == ["ann"]
    stage.until(62)
    stage.resumed("ann", 63)
    stage.at(64, stage.asks("operator", on.Tell(to="ann", text="well done")))
    stage.at(65, stage.exited("ann", Ending.TERMINAL, "no key"))
    assert concluders(stage) == []


def test_another_one_is_asked_where_the_first_is_gone_before_it_could_hear() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"), stage.heard("ben", busy="tool"))
    stage.at(3, spend(stage, "ben", 9.6))
    assert concluders(stage) == ["ann"]
    said = stage.at(4, stage.exited("ann", Ending.TERMINAL, "no key"))
    assert any(line.endswith(": ben is asked") for line in said)
    assert concluders(stage) == ["ben"]
    # One that has heard it is done with it, whatever becomes of it.
    stage.until(62)
    stage.resumed("ben", 63)
    stage.at(64, stage.exited("ben", Ending.TERMINAL, "no key"))
    assert concluders(stage) == []


def test_a_larger_budget_takes_it_back_and_its_own_end_asks_again() -> None:
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"))
    stage.at(3, spend(stage, "ann", 9.6))
    stage.rules = rules(budget_money=100.0)
    said = stage.at(4, spend(stage, "ann", 9.7))
    assert any("conclude" in line and line.endswith("there is more budget now") for line in said)
    assert (concluders(stage), stage.fleet.run.concluder) == ([], "")
    stage.at(5, spend(stage, "ann", 96.0))
    assert concluders(stage) == ["ann"]


def test_a_run_without_a_budget_of_its_own_asks_nobody() -> None:
    stage = Stage(1, rules(plateau=5))
    for clock in (2, 3, 4, 5):
        stage.tried(clock, "ann", -1.0)
    assert concluders(stage) == []
