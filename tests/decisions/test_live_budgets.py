"""What the operator changes of a running run's budget, and a stop that waits for the grades, as transcripts."""

import json
from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, on_request

from coral.codec import decode, encode
from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.agents.budgets import money_left
from coral.fleet.attempts.confirmations import is_affordable
from coral.fleet.decide import next_deadline
from coral.fleet.events import Ending, SetBudget
from coral.fleet.reasons import Budget, BudgetKey, ReasonKind, RunEnd, RunEndKind
from coral.fleet.request_kinds import CancelGrade, HoldGrading, Restart
from coral.fleet.rules import Allowance, in_force
from coral.fleet.run_state import Run

HOUR = 3600.0
RULES = replace(QUIET_RULES, slots=1, stall=9e9, max_defer=9e9, budget_seconds=6 * HOUR, own=Allowance(attempts=1))
DRAIN = on.Stop(end=on_request("enough"), after_grades=True)


def fleet() -> Stage:
    stage = Stage(2, RULES)
    stage.at(1, stage.heard("ann"), stage.heard("ben"))
    return stage


def wanted(key: str, limit: float | None = None, *, as_task: bool = False) -> SetBudget:
    return SetBudget(key=key, limit=limit, as_task=as_task)


def test_a_budget_is_changed_at_once_agents_are_told_and_it_is_undone() -> None:
    stage = fleet()
    text = "budget.hours is 12 (it was 6)"
    assert stage.ask("operator", wanted("hours", 12)) == [f"answer operator: yes, {text}", f"asked: budget: {text}"]
    assert [stage.owed(name) for name in ("ann", "ben")] == [["message h1"], ["message h2"]]
    said = "The operator has changed the budget: budget.hours is 12 now (it was 6)."
    assert stage["ann"].pending_messages[0].prompt == said
    assert next_deadline(stage.fleet, 7 * HOUR, RULES) == pytest.approx(0.8 * 12 * HOUR)
    assert not any("finish" in line for line in stage.until(7 * HOUR))
    assert "budget.hours is 6 (it was 12)" not in stage.ask("operator", wanted("hours", as_task=True), 7 * HOUR)[0]
    assert stage.ask("operator", wanted("hours", 8), 7 * HOUR)[0].endswith("budget.hours is 8 (it was 12)")
    assert stage.fleet.run.stopping is None
    stage.until(8 * HOUR)
    assert stage.fleet.run.stopping is not None


def test_undone_it_is_what_the_task_says_again() -> None:
    stage = fleet()
    stage.ask("operator", wanted("tokens", 500))
    assert stage.ask("operator", wanted("tokens", as_task=True))[0] == (
        "answer operator: yes, budget.tokens is without limit (it was 500)"
    )
    assert stage.fleet.run.budgets == {}
    stage.ask("operator", wanted("plateau", 3.0))
    assert repr(stage.fleet.run.budgets["plateau"].limit) == "3"


def test_it_stands_over_a_resume_until_the_task_says_something_else() -> None:
    stage = fleet()
    stage.ask("operator", wanted("hours", 12))
    before = stage.fleet.run.budgets
    stage.at(3, on.Resumed(away=5.0))
    assert stage.fleet.run.budgets is before
    assert next_deadline(stage.fleet, 7 * HOUR, RULES) == pytest.approx(0.8 * 12 * HOUR)
    stage.rules = replace(RULES, budget_seconds=9 * HOUR)
    stage.at(4, on.Resumed(away=5.0))
    assert stage.fleet.run.budgets == {}


def test_an_agent_whose_own_budget_was_used_up_begins_again() -> None:
    stage = fleet()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage["ann"].phase is Phase.RETIRED
    refused = stage.ask("operator", Restart(agent="ann", fresh=False), 4)
    assert "coral set budget.per_agent.attempts=NUMBER" in refused[0]
    lines = stage.ask("operator", wanted("per_agent.attempts", 2), 5)
    assert lines[-1] == "spawn ann: budget raised, session of ann, told 0, owed message:h2"
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.RUNNING, ReasonKind.BUDGET_RAISED)
    assert stage["ben"].phase is Phase.RUNNING


def test_one_whose_own_budget_is_still_used_up_stays_retired() -> None:
    stage = fleet()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    before = stage["ben"].deadline
    stage.ask("operator", wanted("hours", 12), 4)
    assert stage["ben"].phase is Phase.RUNNING
    assert stage["ben"].deadline == before
    assert (stage["ann"].phase, stage.owed("ben")) == (Phase.RETIRED, ["message h2"])
    assert "message" not in "".join(stage.owed("ann"))


def test_one_that_retired_for_another_reason_stays_retired() -> None:
    stage = fleet()
    stage.at(3, stage.exited("ann", Ending.TERMINAL, "no such key"))
    stage.ask("operator", wanted("per_agent.attempts", 2), 4)
    assert (stage["ann"].phase, stage["ann"].reason.kind) == (Phase.RETIRED, ReasonKind.GIVEN_UP)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (wanted("luck", 1), "cannot set budget.luck: there is no such budget"),
        (wanted("hours", 6), "cannot set budget.hours: it is 6 already"),
        (wanted("hours", 0), "cannot set budget.hours to 0: it must be above 0"),
        (wanted("attempts", 1.5), "cannot set budget.attempts to 1.5: it is a whole number"),
        (wanted("hours", 0.0001), "cannot set: the run would end at once if budget.hours is 0.0001"),
        (wanted("target", -5), "cannot set: the run would end at once if budget.target is -5"),
    ],
)
def test_what_cannot_be_set_changes_nothing(asked: SetBudget, why: str) -> None:
    stage = fleet()
    stage.tried(2, "ann", 1.0)
    before = stage.fleet.run.budgets, stage.owed("ben")
    (line, _) = stage.ask("operator", asked, 3)
    assert line.startswith(f"answer operator: no, {why} (")
    assert (stage.fleet.run.budgets, stage.owed("ben")) == before


def test_what_would_end_the_work_of_all_is_refused_and_of_one_is_not() -> None:
    stage = Stage(2, replace(RULES, own=Allowance()))
    stage.at(1, stage.heard("ann"), stage.heard("ben"))
    stage.tried(2, "ann", 1.0)
    stage.tried(3, "ann", 1.0)
    stage.tried(4, "ben", 1.0)
    line = stage.ask("operator", wanted("per_agent.attempts", 1), 5)[0]
    assert "cannot set: the run would end at once if budget.per_agent.attempts is 1" in line
    assert stage.ask("operator", wanted("per_agent.attempts", 2), 6)[0].startswith("answer operator: yes")


def test_in_a_run_that_is_over_another_budget_is_not_said_to_be_the_cause() -> None:
    stage = Stage(1, replace(RULES, own=Allowance(), budget_attempts=1))
    stage.at(1, stage.heard("ann"))
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.fleet.run.finished is not None
    lines = stage.at(4, on.Resumed(), stage.asks("operator", wanted("hours", 12)))
    assert any("cannot set budget.hours: the run would end at once all the same" in line for line in lines)
    assert stage.fleet.run.budgets == {}


def test_a_target_may_be_negative_and_agents_set_nothing() -> None:
    stage = Stage(2, replace(RULES, budget_seconds=None))
    assert "yes" in stage.ask("operator", wanted("target", 1e6))[0]
    assert "only the operator can" in stage.ask("ann", wanted("target", 2e6))[0]
    stage.stop(3)
    assert "the run is stopping" in stage.ask("operator", wanted("target", 3e6), 3)[0]


def test_a_stop_after_the_grades_ends_the_agents_and_waits_for_what_they_submitted() -> None:
    stage = fleet()
    first, second = stage.in_grading(2, "ann", "ben")
    text = "the agents end; the run stops when what they submitted is graded"
    lines = stage.ask("operator", DRAIN, 3)
    assert lines == [
        f"answer operator: yes, {text}", f"asked: stop after the grades: {text}", "interrupt ann/1", "interrupt ben/1",
    ]  # fmt: skip
    for name in ("ann", "ben"):
        stage.at(4, stage.exited(name, Ending.INTERRUPTED))
    assert [line for line in stage.until(50) if "spawn" in line or "interrupt" in line] == []
    stage.at(51, stage.graded(first, 9.0))
    stage.at(52, on.Published(number=first), stage.checked_out(second))
    assert stage.fleet.run.stopping is None
    assert "publish #2 own best 9" in " ".join(stage.at(53, stage.graded(second, 9.0)))
    assert stage.at(54, on.Published(number=second))[-1].startswith("finish")


def test_without_attempts_it_ends_when_the_agents_have() -> None:
    stage = fleet()
    stage.ask("operator", DRAIN)
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.fleet.run.finished is None
    assert stage.at(4, stage.exited("ben", Ending.CLEAN))[-1].startswith("finish")


def test_while_it_waits_nothing_holds_it_up_and_a_plain_stop_ends_it() -> None:
    stage = fleet()
    stage.in_grading(2, "ann")
    stage.ask("operator", DRAIN, 3)
    refused = {
        "the run stops when it is done": HoldGrading(),
        "the run is stopping (`coral stop`": DRAIN,
        "cannot leave the agents at work": on.Leave(end=on_request("")),
        "cannot restart ann: the run is stopping": Restart(agent="ann", fresh=False),
        "the run is stopping (coral resume": wanted("hours", 12),
        "cannot start a job": on.RunJob(agent="ann", argv=("train",)),
    }
    for why, request in refused.items():
        line = stage.ask("operator", request, 4)[0]
        assert line.startswith("answer operator: no")
        assert why in line
    assert "#1 is cancelled" in " ".join(stage.ask("operator", CancelGrade(number=1), 5))
    stage.stop(6)
    assert stage.fleet.run.stopping is not None
    stage.at(7, on.Resumed(away=1.0))
    assert (stage.fleet.run.draining, stage.fleet.run.stopping) == (None, None)


def test_a_budget_that_is_used_up_meanwhile_cuts_no_grade_off_and_no_other_begins() -> None:
    stage = Stage(2, replace(RULES, slots=1, budget_seconds=HOUR))
    stage.in_grading(2, "ann")
    stage.at(3, stage.submission("ben"))
    stage.at(4, stage.taken(2))
    stage.ask("operator", DRAIN, 5)
    stage.at(6, stage.exited("ann", Ending.INTERRUPTED), stage.exited("ben", Ending.INTERRUPTED))
    stage.rules = replace(stage.rules, budget_seconds=60.0)
    assert stage.until(200) == []
    said = stage.at(201, stage.graded(1, 9.0))
    assert said[0] == "publish #1 new best 9"
    assert said[-1].startswith("finish: budget")
    assert list(stage.fleet.pending) == [1, 2]


def test_it_is_refused_while_grading_is_held() -> None:
    stage = fleet()
    stage.ask("operator", HoldGrading())
    assert stage.ask("operator", DRAIN, 3)[0].endswith("grading is held (coral grading release)")
    assert stage.fleet.run.draining is None


def test_what_a_launch_may_use_and_what_confirms_go_by_the_budget_that_is_set() -> None:
    stage = fleet()
    assert money_left(stage.fleet, stage["ann"], RULES) is None
    stage.ask("operator", wanted("money", 30))
    assert money_left(stage.fleet, stage["ann"], RULES) == 15.0  # two agents share it
    rules = stage.rules = replace(RULES, confirm_share=0.2, budget_attempts=10)
    assert not is_affordable(replace(stage.fleet.run, confirm_seconds=HOUR), rules, 3)
    stage.ask("operator", wanted("attempts", 100))
    assert is_affordable(replace(stage.fleet.run, confirm_seconds=HOUR), rules, 3)


def test_long_after_everything_nothing_falls_due() -> None:
    assert next_deadline(Stage(1, QUIET_RULES).fleet, 1e12, QUIET_RULES) is None


def test_the_alert_that_an_agent_has_retired_is_settled_when_it_works_again() -> None:
    stage = fleet()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    number, settled = stage.fleet.run.alert_count, stage.fleet.run.alerts_settled
    assert (number, settled, stage["ann"].retired_alert, stage["ben"].retired_alert) == (1, (), 1, 0)
    stage.ask("operator", wanted("per_agent.attempts", 2), 5)
    assert (stage.fleet.run.alerts_settled, stage["ann"].retired_alert) == ((1,), 0)
    stage.at(6, stage.heard("ann"))
    stage.tried(6, "ann", 2.0)
    stage.at(7, stage.exited("ann", Ending.INTERRUPTED))
    stage.ask("operator", on.AcknowledgeAlerts(through=None), 8)
    stage.ask("operator", wanted("per_agent.attempts", 3), 9)
    assert stage["ann"].phase is Phase.RUNNING
    assert stage.fleet.run.alerts_settled == ()  # by then it was acknowledged


def test_a_whole_number_is_one_after_a_resume_too() -> None:
    stage = fleet()
    stage.ask("operator", wanted("attempts", 100.0))
    stage.ask("operator", wanted("hours", 2.5))
    end = RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 100))
    back = decode(Run, json.loads(json.dumps(encode(replace(stage.fleet.run, finished=end)))))
    assert repr(in_force(RULES, back).budget_attempts) == "100"
    assert in_force(RULES, back).budget_seconds == 2.5 * HOUR
    assert repr(back.finished.budget.limit) == "100"
    plateau = decode(RunEnd, json.loads(json.dumps(encode(RunEnd(RunEndKind.PLATEAU, limit=3)))))
    assert repr(plateau.limit) == "3"
