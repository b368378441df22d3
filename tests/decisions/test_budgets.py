"""What a run may spend, as transcripts: no more is taken than is paid for, and the end has a stated reason."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECTING, Stage, brief, submitted

from coral.fleet import events as on
from coral.fleet.agent_state import Spent
from coral.fleet.agents.budgets import money_left
from coral.fleet.events import Ending, Outcome
from coral.fleet.policy import MAX_INTAKE_RETRIES
from coral.fleet.rules import Allowance


def test_the_budget_of_attempts_ends_the_run_when_the_last_is_graded_and_void_ones_cost_nothing() -> None:
    stage = Stage(2, replace(REFLECTING, budget_attempts=3))
    stage.tried(2, "ann", 1.0)
    stage.resumed("ann", 2)
    stage.in_grading(3, "ann", "ben")
    stage.at(4, stage.graded(2, reason="wrong"))
    stage.resumed("ann", 4)
    assert stage.at(5, stage.graded(3, 1.0)) == [
        "publish #3 improved 1",
        "interrupt ann/3",
        "interrupt ben/1",
    ]
    assert brief(stage.fleet.run.stopping) == "budget (3 attempts)"
    assert stage.at(6, stage.exited("ann"), stage.exited("ben"))[-1] == "finish: budget (3 attempts)"
    # A resume with the same budget starts nobody.
    assert stage.at(7, on.Resumed())[-1] == "finish: budget (3 attempts)"
    assert stage["ann"].launch == 3
    # With a larger one it goes on.
    stage.rules = replace(stage.rules, budget_attempts=4)
    assert stage.at(8, on.Resumed())[-1].startswith("spawn ben/2: resumed")
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=1))
    stage.in_grading(2, "ann")
    stage.voided(3, 1)
    assert stage.fleet.run.stopping is None
    stage.tried(4, "ann", 1.0)
    assert brief(stage.fleet.run.stopping) == "budget (1 attempts)"


def test_the_budget_of_hours_ends_the_run_to_the_second() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_seconds=90.0))
    # On the way it is told twice.
    assert stage.until(72) == ["72 interrupt ann/1"]
    stage.resumed("ann", 73)
    assert stage.until(85.5) == ["85.5 interrupt ann/2"]
    stage.resumed("ann", 86)
    assert stage.until(89.9) == []
    assert stage.until(90) == ["90 interrupt ann/3"]
    assert stage.at(91, stage.exited("ann"))[-1] == "finish: budget (0.025 hours)"


@pytest.mark.parametrize(("score", "ends"), [(2.5, True), (2.6, True), (2.4999, False)])
def test_reaching_the_target_ends_the_run(score: float, ends: bool) -> None:
    stage = Stage(2, rules=replace(QUIET_RULES, target=2.5))
    said = stage.tried(2, "ann", score)
    assert said[1:] == (["interrupt ann/1", "interrupt ben/1"] if ends else [])
    assert brief(stage.fleet.run.stopping) == (f"target (2.5, {score:g}, 1)" if ends else "")


def test_a_fleet_without_anybody_ends_when_nothing_is_left_to_grade() -> None:
    stage = Stage(2)
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("ann", Ending.TERMINAL, "a"), stage.exited("ben", Ending.TERMINAL, "b"))
    assert stage.fleet.run.stopping is None
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 improved 1", "finish: all retired"]
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    assert "finish" not in stage.at(3, stage.exited("ann", Ending.TERMINAL, "a"))[-1]
    assert stage.at(4, on.IntakeFailed(number=1, reason="?", our_fault=False))[-1] == "finish: all retired"


def test_an_attempt_given_up_at_the_last_moment_counts_for_the_budget_at_once() -> None:
    # The stop waited for the next event, and the interrupt with it.
    stage = Stage(rules=replace(REFLECTING, grade_timeout=10.0, budget_attempts=1))
    stage.in_grading(2, "ann", wait=600)
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.graded(1, outcome=Outcome.CRASHED)) == [
        "publish #1 failed (the grader took longer than 10 seconds), then reflect",
        "interrupt ann/1",
    ]


def test_a_message_that_waits_at_an_eval_goes_out_when_its_grade_is_given_up() -> None:
    # Grades were given up after agents had been looked at: the interrupt waited for the next event.
    stage = Stage(rules=replace(QUIET_RULES, grade_timeout=10.0))
    stage.in_grading(2, "ann", wait=600)
    stage.at(3, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(27)[-3:] == [
        "27 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "27 publish #1 void (the grader could not be killed), then message",
        "27 interrupt ann/1",
    ]


# --- the budget of attempts -------------------------------------------------------------------------------------------


def test_no_more_is_taken_than_the_budget_pays_for_with_what_is_on_its_way() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=3))
    stage.tried(2, "ann", 1.0)
    assert stage.at(3, *[stage.submission("ann") for _ in range(3)]) == [
        "take in #2: commit 2 of ann",
        "accept 2 of ann as #2",
        "take in #3: commit 3 of ann",
        "accept 3 of ann as #3",
        "refuse 4 of ann: run budget (3 attempts)",
    ]
    assert stage["ann"].submitted == 3
    # Seen again, because the refusal was lost with its supervisor, it is refused again.
    assert stage.at(4, submitted("ann", 4))[0].startswith("refuse 4 of ann")
    # Were one of them void, the next would be paid for.
    stage.at(5, *[on.IntakeFailed(number=2, reason="no git", our_fault=True)] * (MAX_INTAKE_RETRIES + 1))
    assert stage.at(5, stage.submission("ann"))[1] == "accept 5 of ann as #4"
    # Its record was on its way to the disk, and the last attempt that the budget pays for was refused.
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=2))
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 1.0))
    assert stage.at(3, stage.submission("ann"))[1] == "accept 2 of ann as #2"


# --- what is left to a launch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "own", "left"),
    [(None, None, None), (5.0, None, 1.5), (None, 4.0, 3.0), (5.0, 4.0, 1.5), (9.0, 1.5, 0.5), (1.0, 9.0, 0.0)],
)
def test_a_launch_may_use_its_share_of_what_is_left_to_the_fleet_and_what_is_left_to_its_agent(
    run: float | None, own: float | None, left: float | None
) -> None:
    rules = replace(QUIET_RULES, budget_money=run, own=Allowance(money=own))
    stage = Stage(2, rules)
    for name in stage.names:
        stage.at(2, on.Used(agent=name, launch=1, figure=Spent(input=1, money=1.0)))
    assert money_left(stage.fleet, stage["ann"], rules) == left


def test_who_has_retired_shares_in_nothing_and_before_anything_is_used_all_is_left() -> None:
    rules = replace(QUIET_RULES, budget_money=5.0)
    stage = Stage(2, rules)
    stage.at(2, stage.exited("ben", Ending.TERMINAL))
    for fleet in (stage.fleet, Stage(1, rules).fleet):
        assert money_left(fleet, fleet.agents["ann"], rules) == 5.0
