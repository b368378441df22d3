"""What a run and each agent may spend, as transcripts: no more than is paid for, and a word before the end."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECTING, Stage, brief, submitted

from coral.fleet import events as on
from coral.fleet.agent_state import Phase, Spent
from coral.fleet.agents.budgets import money_left
from coral.fleet.events import Ending, Outcome
from coral.fleet.policy import MAX_INTAKE_RETRIES
from coral.fleet.rules import Allowance, Rules


def test_the_budget_of_attempts_ends_the_run_when_the_last_is_graded_and_void_ones_cost_nothing() -> None:
    stage = Stage(2, replace(REFLECTING, budget_attempts=3))
    stage.tried(2, "ann", 1.0)
    stage.resumed("ann", 2)
    stage.in_grading(3, "ann", "ben")
    stage.at(4, stage.graded(2, reason="wrong"))
    stage.resumed("ann", 4)
    assert stage.at(5, stage.graded(3, 1.0)) == ["publish #3 own best 1", "interrupt ann/3", "interrupt ben/1"]
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
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 new best 1", "finish: all retired"]
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    assert "finish" not in stage.at(3, stage.exited("ann", Ending.TERMINAL, "a"))[-1]
    assert stage.at(4, on.IntakeFailed(number=1, reason="?", our_fault=False))[-1] == "finish: all retired"


def test_a_grade_that_is_given_up_counts_for_the_budget_and_lets_messages_out_at_once() -> None:
    # The stop waited for the next event, and the interrupt with it.
    stage = Stage(rules=replace(REFLECTING, grade_timeout=10.0, budget_attempts=1))
    stage.in_grading(2, "ann", wait=600)
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.graded(1, outcome=Outcome.CRASHED)) == [
        "publish #1 failed (the grader took longer than 10 seconds), then reflect",
        "interrupt ann/1",
    ]
    # Grades were given up after agents had been looked at: the interrupt waited for the next event.
    stage = Stage(rules=replace(QUIET_RULES, grade_timeout=10.0))
    stage.in_grading(2, "ann", wait=600)
    stage.at(3, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(79)[-3:] == [
        "79 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "79 publish #1 failed (the grader took longer than 10 seconds), then message",
        "79 interrupt ann/1",
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


def used(stage: Stage, agent: str, money: float = 0.0, tokens: int = 0) -> on.Used:
    """By now, in this launch."""
    half = tokens // 2
    figure = Spent(input=tokens - half, output=half, cached=10**9, money=money or None)
    return on.Used(agent=agent, launch=stage[agent].launch, figure=figure)


def landings(stage: Stage, agent: str) -> list[str]:
    """What the agent is owed of these notices alone."""
    return [owed for owed in stage.owed(agent) if owed.startswith("land ")]


def rules(**fields: object) -> Rules:
    return replace(QUIET_RULES, **fields)  # type: ignore[arg-type]  # fields of Rules


def own(**fields: object) -> Rules:
    return rules(own=Allowance(**fields))  # type: ignore[arg-type]  # fields of Allowance


# --- the end --------------------------------------------------------------------------------------------------------


def test_the_budget_of_money_or_of_tokens_ends_the_run_and_caches_do_not_count() -> None:
    stage = Stage(2, rules(budget_money=2.5))
    stage.at(2, used(stage, "ann", 1.0), used(stage, "ben", 0.9))
    assert stage.fleet.run.stopping is None
    assert stage.at(3, used(stage, "ann", 1.6)) == ["interrupt ann/1", "interrupt ben/1"]
    assert brief(stage.fleet.run.stopping) == "budget (2.5 money)"
    assert stage.at(4, stage.exited("ann"), stage.exited("ben"))[-1] == "finish: budget (2.5 money)"
    # Agents that end meanwhile may have used more: it is counted, and nothing starts.
    assert stage.at(5, on.Resumed())[-1] == "finish: budget (2.5 money)"
    stage = Stage(2, rules(budget_tokens=1000))
    stage.at(2, used(stage, "ann", tokens=700))
    stage.until(700)
    stage.at(700, used(stage, "ben", tokens=99))
    assert stage.fleet.run.stopping is None
    stage.at(701, used(stage, "ben", tokens=300))
    assert brief(stage.fleet.run.stopping) == "budget (1000 tokens)"


def test_a_plateau_of_the_fleet_ends_the_run() -> None:
    stage = Stage(2, rules(plateau=2))
    stage.tried(2, "ann", 5.0)
    stage.tried(3, "ann", 1.0)
    stage.tried(4, "ben", 6.0)
    stage.tried(5, "ann", 5.5)
    assert stage.fleet.run.stopping is None
    stage.tried(6, "ben", None)
    assert brief(stage.fleet.run.stopping) == "plateau (2)"


def test_an_agent_whose_budget_is_used_up_retires_and_the_others_go_on() -> None:
    stage = Stage(2, own(money=1.0))
    stage.at(2, used(stage, "ann", 0.79), used(stage, "ben", 0.5))
    assert stage.at(3, used(stage, "ann", 1.0)) == ["interrupt ann/1"]
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED)) == [
        "exited ann: launch 1 ended: interrupted",
        "alert run-alert-1 of ann: ann has retired: own budget (1 money)",
    ]
    assert (stage["ann"].phase, brief(stage["ann"].reason)) == (Phase.RETIRED, "own budget (1 money)")
    assert stage["ben"].phase is Phase.RUNNING
    assert stage.fleet.run.stopping is None
    # A supervisor that takes over does not start it either, unless it may use more by now.
    assert [line for line in stage.at(5, on.Resumed()) if "ann" in line] == [
        "alert run-alert-1 of ann: ann has retired: own budget (1 money) again",
        "show ann",
        "alert run-alert-2 of ann: ann has retired: own budget (1 money)",
    ]
    stage.rules = own(money=1.5)
    assert any(line.startswith("spawn ann/2: resumed") for line in stage.at(6, on.Resumed()))


def test_an_agent_may_use_so_many_tokens_and_retires_at_once_or_when_its_time_comes() -> None:
    stage = Stage(2, own(tokens=10))
    stage.at(2, used(stage, "ann", tokens=7))
    assert stage.at(3, used(stage, "ann", tokens=10)) == ["interrupt ann/1"]
    assert stage.at(4, stage.exited("ann"))[-1].endswith("own budget (10 tokens)")
    stage = Stage(2, own(tokens=10))
    stage.at(2, used(stage, "ann", tokens=10), stage.exited("ann"))
    assert stage["ann"].phase is Phase.WAITING
    assert stage.until(30)[0].endswith("ann has retired: own budget (10 tokens)")


def test_an_agent_may_make_so_many_attempts_and_where_all_have_the_run_ends() -> None:
    stage = Stage(2, own(attempts=2))
    stage.tried(2, "ann", 1.0)
    stage.tried(2, "ben", 1.5)
    assert stage.at(3, *[stage.submission("ann") for _ in range(2)])[2:] == ["refuse 4 of ann: own budget (2 attempts)"]
    assert stage.at(4, stage.submission("ben"))[1] == "accept 5 of ben as #4"
    stage.at(5, stage.taken(3))
    assert stage.at(6, stage.graded(3, 2.0)) == ["publish #3 new best 2", "interrupt ann/1"]
    # Settled, it is no longer on its way, and is not counted twice.
    stage.rules = own(attempts=3)
    assert stage.at(6, submitted("ann", 6))[1] == "accept 6 of ann as #5"
    stage = Stage(1, own(attempts=1))
    stage.tried(2, "ann", 1.0)
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED))[-1] == "finish: all retired"


# --- the word before it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "key", "most"),
    [
        (rules(budget_money=10.0), "money", 10.0),
        (rules(budget_tokens=1000), "tokens", 1000),
        (own(money=10.0), "money", 10.0),
        (own(tokens=1000), "tokens", 1000),
    ],
    ids=["money", "tokens", "own money", "own tokens"],
)
def test_at_80_and_at_95_percent_agents_are_asked_to_land_once(given: Rules, key: str, most: float) -> None:
    def use(share: float) -> on.Used:
        return used(stage, "ann", **{key: type(most)(share * most)})  # type: ignore[arg-type]  # tokens are whole

    stage = Stage(1, given)
    assert stage.at(2, use(0.792)) == []
    assert stage.at(3, use(0.8)) == ["interrupt ann/1"]
    assert stage.owed("ann") == ["land h1"]
    said = stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    assert said[-1] == "spawn ann/2: heartbeat, session of ann, told 0, owed land:h1"
    # Its answer is not waited for.
    assert stage.at(5, stage.heard("ann")) == ["heartbeat ann: land (h1) received"]
    assert stage["ann"].awaiting_reply == ()
    assert stage.at(6, use(0.15)) == ["interrupt ann/2"]
    assert landings(stage, "ann") == ["land h2"]
    stage.resumed("ann", 7)
    assert stage["ann"].budget_notice_level == 0.95
    stage.until(1000)
    assert stage.owed("ann") == []


def test_attempts_of_the_run_are_announced_to_everybody_and_an_agent_s_own_to_it_alone() -> None:
    stage = Stage(2, rules(budget_attempts=5))
    for clock in (2, 3, 4):
        stage.tried(clock, "ann", float(clock))
    assert stage.owed("ben") == []
    assert stage.tried(5, "ann", 9.0)[1:] == ["interrupt ann/1", "interrupt ben/1"]
    assert (landings(stage, "ann"), landings(stage, "ben")) == (["land h1"], ["land h2"])
    stage = Stage(2, own(attempts=5))
    for clock in (2, 3, 4, 5):
        stage.tried(clock, "ann", float(clock))
    assert (stage.owed("ann"), stage.owed("ben")) == (["land h1"], [])


def test_who_waits_for_a_grade_hears_of_it_with_the_grade_and_after_its_wait_at_once() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.in_grading(2, "ann", wait=500)
    assert stage.at(3, used(stage, "ben", 8.0)) == ["interrupt ben/1"]
    assert [message.due for message in stage["ann"].pending_messages] == [502.0]
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 new best 1, then land", "interrupt ann/1"]
    stage = Stage(1, rules(budget_money=10.0))
    stage.in_grading(2, "ann", wait=5)
    stage.at(20, used(stage, "ann", 8.0))
    assert [message.due for message in stage["ann"].pending_messages] == [20.0]


def test_the_word_cuts_no_tool_and_other_words_that_are_owed_do_not_speak_for_it() -> None:
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"))
    assert stage.at(3, used(stage, "ann", 8.0)) == []
    assert stage.at(4, stage.heard("ann", busy="thinking")) == ["interrupt ann/1"]
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"))
    stage.at(2, stage.asks("operator", on.Tell(to="ann", text="hello")))
    stage.at(3, used(stage, "ann", 8.0))
    assert stage.owed("ann") == ["message h1", "land h2"]


def test_one_that_is_not_delivered_yet_says_it_for_both_and_one_on_its_way_does_not() -> None:
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"))
    stage.at(3, used(stage, "ann", 8.0))
    stage.at(4, used(stage, "ann", 9.5))
    assert landings(stage, "ann") == ["land h1"]
    assert stage["ann"].budget_notice_level == 0.95
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, used(stage, "ann", 8.0))
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage["ann"].in_flight == ("h1",)
    stage.at(4, used(stage, "ann", 1.5))
    assert landings(stage, "ann") == ["land h1", "land h2"]


def test_a_larger_budget_takes_back_what_was_not_delivered() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.at(2, stage.heard("ann", busy="tool"), stage.heard("ben", busy="tool"))
    stage.at(2, stage.asks("operator", on.Tell(to="ann", text="hello")))
    stage.at(3, used(stage, "ann", 8.0))
    stage.at(4, stage.exited("ben", Ending.CRASHED))
    stage.until(12)
    assert stage["ben"].in_flight == ("h3",)
    stage.rules = rules(budget_money=100.0)
    assert stage.at(13, used(stage, "ann", 8.1)) == ["withdrawn ann: land (h2): there is more budget now"]
    # ben was handed it: that cannot be taken back.
    assert (stage.owed("ann"), stage.owed("ben")) == (["message h1"], ["land h3"])
    assert (stage["ann"].budget_notice_level, stage["ben"].budget_notice_level) == (0.0, 0.0)
    stage.at(14, used(stage, "ann", 80.0))
    assert stage["ann"].budget_notice_level == 0.8
    assert stage.owed("ann") == ["message h1", "land h4"]


def test_the_nearer_of_two_ends_counts_and_what_nobody_knows_the_price_of_has_cost_nothing() -> None:
    for given in (rules(budget_money=0.5), own(money=0.5)):
        stage = Stage(1, given)
        assert stage.at(2, used(stage, "ann", tokens=10)) == []
        assert stage["ann"].budget_notice_level == 0.0
    stage = Stage(2, rules(budget_money=100.0, own=Allowance(money=10.0)))
    stage.at(2, used(stage, "ann", 9.5))
    assert (stage["ann"].budget_notice_level, stage["ben"].budget_notice_level) == (0.95, 0.0)


def test_nobody_is_told_who_has_retired_or_when_the_run_ends_anyway() -> None:
    stage = Stage(2, rules(budget_money=10.0))
    stage.at(2, stage.exited("ben", Ending.TERMINAL, "no key"))
    stage.at(3, used(stage, "ann", 8.0))
    assert (stage["ben"].budget_notice_level, stage.owed("ben")) == (0.0, [])
    stage = Stage(1, rules(budget_money=10.0))
    stage.at(2, used(stage, "ann", 11.0))
    assert (stage["ann"].budget_notice_level, stage.owed("ann")) == (0.0, [])
    stage = Stage(1, rules(plateau=5, target=100.0))
    for clock in (2, 3, 4, 5):
        stage.tried(clock, "ann", -1.0)
    assert stage.owed("ann") == []
