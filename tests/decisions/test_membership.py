"""Agents that the operator adds and moves, as transcripts."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECTING, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Agent, Meter, Order, Phase, Spent
from coral.fleet.agents.spending import reports_nothing
from coral.fleet.events import Ending
from coral.fleet.members import Former, Member, Prices, WantedMember as Wanted
from coral.fleet.reasons import ReasonKind
from coral.fleet.rules import Rules, in_force
from coral.fleet.run_state import Run
from heartbeats.heartbeat import Scope

RULES = replace(QUIET_RULES, agents=("ann", "ben"), accounts={"ann": "work", "ben": "work"}, stall=9e9)
NATIVE, OPUS = Member(runtime="native"), Member(runtime="claude", model="opus", account="home")
PRICES = Prices(input=1.0, cached=0.1, output=5.0)
SONNET = Member(runtime="claude", model="sonnet", account="work", prices=PRICES)
ADD, MOVE = on.AddAgent(wanted=Wanted()), on.MoveAgent(agent="ann", wanted=Wanted(model="opus"))
TOLD = "The operator has added agent-1 to the fleet: it is driven by native."
MOVED = "The operator has moved you: you are driven by claude, opus now (before: claude, sonnet)."


def fleet(rules: Rules = RULES) -> Stage:
    return Stage(2, rules)


def joined(rules: Rules = RULES) -> Stage:
    """Two agents at work, and a third that the operator has added."""
    stage = fleet(rules)
    stage.ask("operator", ADD)
    stage.at(3, on.AgentPrepared(agent="agent-1", member=NATIVE))
    return stage


def moving(was: Member = SONNET, member: Member = OPUS) -> Stage:
    stage = fleet()
    stage.ask("operator", MOVE)
    stage.at(3, on.AgentPrepared(agent="ann", member=member, was=was))
    return stage


def prompts(stage: Stage, agent: str) -> list[str]:
    return [message.prompt for message in stage[agent].pending_messages]


def test_an_agent_joins_once_it_is_prepared_and_nobody_is_interrupted_for_it() -> None:
    stage = fleet()
    said = "agent-1 is being prepared; it begins when its workspace is ready"
    assert stage.ask("operator", ADD) == [
        "prepare the new agent-1: as the others",
        f"answer operator: yes, {said}",
        f"asked: add an agent: {said}",
    ]
    assert list(stage.fleet.agents) == ["ann", "ben"]
    assert stage.at(3, on.AgentPrepared(agent="agent-1", member=NATIVE)) == [
        "drive agent-1 by native",
        "show agent-1",
        "added agent-1: native",
        "spawn agent-1/1: start, told 0",
    ]
    assert [prompts(stage, name) for name in ("ann", "ben", "agent-1")] == [[TOLD], [TOLD], []]
    assert stage.until(5000) == []
    stage.at(5001, stage.exited("ann"))
    assert [message.prompt for message in stage.actions[-1].messages] == [TOLD]  # type: ignore[union-attr]


def test_who_waits_for_its_grade_is_not_interrupted_to_be_told_of_a_new_agent() -> None:
    stage = joined()
    (number,) = stage.in_grading(4, "ann", wait=600.0)
    assert stage.at(5, stage.graded(number, 9.0)) == [f"publish #{number} new best 9"]
    stage = joined(replace(REFLECTING, agents=("ann", "ben")))
    (number,) = stage.in_grading(4, "ann", wait=600.0)
    assert stage.at(5, stage.graded(number, 9.0))[1:] == ["interrupt ann/1"]


def test_an_agent_that_waits_for_its_job_is_not_started_to_be_told_of_a_new_agent() -> None:
    stage = fleet()
    stage.ask("ann", on.RunJob(agent="ann", argv=("train",)))
    stage.at(3, stage.exited("ann"))
    assert stage["ann"].reason.kind is ReasonKind.WAITS_FOR_JOB
    stage.ask("operator", ADD, 4)
    assert not [line for line in stage.at(5, on.AgentPrepared(agent="agent-1", member=NATIVE)) if "ann" in line]


def test_what_was_prepared_is_not_taken_twice_and_what_nobody_wanted_not_at_all() -> None:
    stage = joined()
    assert stage.at(4, on.AgentPrepared(agent="agent-1", member=NATIVE)) == []
    assert stage.at(5, on.AgentPrepared(agent="cid", member=NATIVE)) == []
    assert stage.at(6, on.AgentNotPrepared(agent="cid", reason="no")) == []


def test_who_cannot_be_prepared_is_reported_and_its_name_is_free_again() -> None:
    stage = fleet()
    stage.ask("operator", ADD)
    assert stage.at(3, on.AgentNotPrepared(agent="agent-1", reason="no such program")) == [
        "alert run-alert-1: agent-1 is not added: no such program"
    ]
    assert "yes, agent-1 is being prepared" in stage.ask("operator", ADD, 4)[1]
    stage = fleet()
    stage.ask("operator", MOVE)
    assert stage.at(3, on.AgentNotPrepared(agent="ann", reason="no such program")) == [
        "alert run-alert-1 of ann: ann is not moved: no such program"
    ]


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        (on.AddAgent(wanted=Wanted(), name="ann"), "cannot add ann: there is such an agent"),
        (on.AddAgent(wanted=Wanted(), name="agent-1"), "cannot add agent-1: there is such an agent"),
        (on.AddAgent(wanted=Wanted(), name="../x"), "cannot add '../x': that is no name for an agent"),
        (on.AddAgent(wanted=Wanted(), name="fleet"), "cannot add 'fleet': that is no name for an agent"),
        (on.AddAgent(wanted=Wanted(), name="operator"), "cannot add 'operator': that is no name for an agent"),
        (on.MoveAgent(agent="cid", wanted=Wanted(model="opus")), "cannot move 'cid': there is no such agent"),
        (on.MoveAgent(agent="ann", wanted=Wanted()), "cannot move ann: nothing is to change"),
        (
            on.MoveAgent(agent="ben", wanted=Wanted(model="opus")),
            "cannot move ben: its last move is being prepared",
        ),
    ],
)
def test_what_cannot_be_is_refused(asked: on.Request, refusal: str) -> None:
    stage = fleet()
    stage.at(2, stage.asks("operator", ADD), stage.asks("operator", on.MoveAgent(agent="ben", wanted=Wanted(role="r"))))
    assert stage.ask("operator", asked, 3)[0].startswith(f"answer operator: no, {refusal}")


def test_agents_cannot_add_agents_and_a_run_that_stops_gets_none() -> None:
    stage = fleet()
    assert stage.ask("ann", ADD)[0].startswith("answer ann: no, cannot do this for an agent")
    stage.stop(3)
    assert stage.ask("operator", ADD, 3)[0].startswith("answer operator: no, cannot add an agent: the run is stopping")


def test_names_go_on_after_the_last_number() -> None:
    stage = Stage(1, replace(QUIET_RULES, agents=("ann", "agent-4")))
    assert "yes, agent-5 is being prepared" in stage.ask("operator", ADD)[1]
    assert "yes, agent-6 is being prepared" in stage.ask("operator", ADD, 3)[1]
    assert "yes, zoe-2 is being prepared" in stage.ask("operator", on.AddAgent(wanted=Wanted(), name="zoe-2"), 4)[1]


def test_an_added_agent_stays_over_a_resume_and_has_its_account_and_prices() -> None:
    stage = fleet()
    stage.ask("operator", ADD)
    stage.at(3, on.AgentPrepared(agent="agent-1", member=SONNET))
    rules = in_force(RULES, stage.fleet.run)
    assert rules.agents == ("ann", "ben", "agent-1")
    assert (rules.accounts["agent-1"], rules.prices["agent-1"]) == ("work", SONNET.prices)
    assert stage.fleet.heartbeats["agent-1"] == RULES.defaults(Scope.OWN)
    stage.at(4, stage.heard("agent-1"), on.Resumed(away=1.0))
    assert stage["agent-1"].phase is Phase.RUNNING
    stage.ask("operator", on.Retire(agent="agent-1"), 5)
    stage.at(6, stage.exited("agent-1", Ending.INTERRUPTED))
    stage.at(7, on.Resumed(away=1.0))
    assert (stage["agent-1"].phase, stage["agent-1"].order) == (Phase.RETIRED, Order.RETIRE)


def test_a_new_supervisor_prepares_again_who_was_being_prepared() -> None:
    stage = Stage(2, replace(RULES, agents=("ann", "ben")))
    stage.at(2, stage.asks("operator", ADD), stage.asks("operator", MOVE))
    stage.rules = replace(RULES, agents=("ann", "ben", "agent-1"))  # the task has one of that name since
    said = stage.at(3, on.Resumed(away=1.0))
    assert [line for line in said if line.startswith("prepare")] == [
        "prepare the new agent-1: as the others",
        "prepare ann: model=opus",
    ]
    assert "agent-1" not in stage.fleet.agents


def test_a_run_whose_agents_have_all_retired_waits_for_the_one_that_is_being_prepared() -> None:
    stage = fleet()
    stage.ask("operator", ADD)
    stage.at(3, stage.exited("ann", Ending.TERMINAL), stage.exited("ben", Ending.TERMINAL))
    assert stage.fleet.run.finished is None
    assert "finish: all retired" in stage.at(4, on.AgentNotPrepared(agent="agent-1", reason="no"))


def test_a_move_waits_for_a_good_moment_and_is_told() -> None:
    stage = fleet()
    said = "ann is being prepared for the move; it is in force with its next launch"
    assert stage.ask("operator", MOVE) == [
        "prepare ann: model=opus",
        f"answer operator: yes, {said}",
        f"asked: move ann: {said}",
    ]
    assert stage.at(3, on.AgentPrepared(agent="ann", member=OPUS, was=SONNET)) == []
    assert "ann" not in stage.fleet.run.members
    assert stage.until(602) == []
    assert stage.at(603) == ["interrupt ann/1"]
    assert stage.at(604, stage.exited("ann", Ending.INTERRUPTED)) == [
        "exited ann: launch 1 ended: interrupted",
        "drive ann by claude, opus",
        "moved ann: claude, sonnet -> claude, opus",
        "spawn ann/2: heartbeat, session of ann, told 0, owed message:h1",
    ]
    assert prompts(stage, "ann") == [MOVED]
    rules = in_force(RULES, stage.fleet.run)
    assert (rules.accounts, rules.agents) == ({"ann": "home", "ben": "work"}, RULES.agents)
    assert stage.fleet.run.members == {"ann": OPUS}  # neither added, nor driven by another program before


def test_what_the_task_says_of_an_agent_holds_until_the_operator_says_otherwise() -> None:
    task = replace(RULES, prices={"ann": PRICES, "ben": PRICES})
    moved = {"ann": Member(runtime="native"), "ben": replace(OPUS, added=True), "gone": NATIVE}
    rules = in_force(task, Run(members=moved))
    assert (rules.agents, rules.accounts, rules.prices) == (("ann", "ben"), {"ben": "home"}, {})
    rules = in_force(task, Run(members={"ann": NATIVE}))
    assert (rules.accounts, rules.prices) == ({"ben": "work"}, {"ben": PRICES})


def test_an_agent_that_waits_moves_at_once() -> None:
    stage = fleet()
    stage.ask("operator", on.Pause(agent="ann"))
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    stage.ask("operator", MOVE, 4)
    assert stage.at(5, on.AgentPrepared(agent="ann", member=OPUS, was=SONNET)) == [
        "drive ann by claude, opus",
        "moved ann: claude, sonnet -> claude, opus",
    ]
    assert stage["ann"].phase is Phase.PARKED


def test_another_program_begins_a_conversation_of_its_own() -> None:
    stage = moving(was=NATIVE)
    said = stage.at(4, stage.exited("ann"))
    assert "drive ann by claude, opus, aside what it had up to launch 1" in said
    assert stage.fleet.run.members["ann"].former == (Former(through=1, runtime="native"),)
    (spawned,) = [line for line in stage.until(60) if "spawn" in line]
    assert spawned.endswith("spawn ann/2: turn ended, told 0, owed message:h1")


def moved(stage: Stage, clock: float, member: Member, was: Member) -> None:
    """The operator moves ann, its launch ends, and the next one begins."""
    stage.ask("operator", MOVE, clock)
    stage.at(clock, on.AgentPrepared(agent="ann", member=member, was=was))
    stage.at(clock + 1, stage.exited("ann", Ending.INTERRUPTED))
    stage.until(clock + 60)


def spends(stage: Stage, clock: float, tokens: int, money: float | None = None, session: str = "s") -> None:
    figure = Spent(input=tokens, money=money)
    stage.at(clock, on.Used(agent="ann", launch=stage["ann"].launch, figure=figure, session=session))


def test_after_a_move_from_a_model_with_a_price_to_one_without_the_money_is_a_lower_bound() -> None:
    stage = fleet(replace(RULES, prices={"ann": PRICES}))
    spends(stage, 2, 1_000_000)
    assert (stage["ann"].spent.money, stage["ann"].meter.is_money_partial) == (1.0, False)
    moved(stage, 3, OPUS, SONNET)
    spends(stage, 70, 1_000_001)
    assert (stage["ann"].spent.money, stage["ann"].meter.is_money_partial) == (1.0, True)
    moved(stage, 80, SONNET, OPUS)
    spends(stage, 150, 1_000_002, 2.0)
    assert stage["ann"].meter.is_money_lost, "this money is not that of the other model"


def test_what_a_program_that_reports_nothing_has_used_is_lost_by_a_move() -> None:
    silent, told = Member(runtime="cursor", account="home"), Member(runtime="claude", account="work")
    stage = fleet()

    def is_silent() -> bool:
        return reports_nothing(stage["ann"], stage.fleet.run.members.get("ann"), "home")

    assert is_silent()
    spends(stage, 2, 10, 1.0)
    assert (is_silent(), stage["ann"].meter.is_money_partial) == (False, False)
    stage.ask("operator", MOVE, 3)
    stage.at(3, on.AgentPrepared(agent="ann", member=silent, was=told))
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].launch, is_silent()) == (1, False), "it has not begun yet"
    stage.until(60)
    assert (stage["ann"].launch, is_silent(), stage["ann"].meter.is_use_lost) == (2, True, False)
    assert not reports_nothing(stage["ann"], stage.fleet.run.members["ann"], ""), "it uses no model"
    moved(stage, 70, told, silent)
    assert stage["ann"].meter.is_use_lost
    spends(stage, 140, 10, 1.0, "t")
    assert (is_silent(), stage["ann"].meter.is_use_lost, stage["ann"].meter.is_money_partial) == (False, True, True)
    moved(stage, 150, OPUS, told)
    assert stage["ann"].meter.is_use_lost
    assert not reports_nothing(Agent(name="ann"), None, "home"), "it has not begun yet"
    twice = replace(told, former=(Former(through=1, runtime="cursor"), Former(through=2, runtime="codex")))
    assert reports_nothing(Agent(name="ann", launch=3, meter=Meter(launch=2)), twice, "home")


def test_a_move_from_a_program_without_a_model_loses_no_use() -> None:
    stage = fleet(replace(RULES, accounts={}))
    moved(stage, 3, OPUS, NATIVE)
    assert not stage["ann"].meter.is_use_lost


def test_a_move_that_is_taken_back_before_it_is_in_force_disturbs_nobody() -> None:
    stage = moving()
    back = on.MoveAgent(agent="ann", wanted=Wanted(model="sonnet"))
    assert stage.ask("operator", back, 4)[0] == "prepare ann: model=sonnet, based on claude, opus"
    assert stage.at(5, on.AgentPrepared(agent="ann", member=SONNET, was=SONNET)) == [
        "withdrawn ann: message (h1): the operator has changed the move",
        "moved ann: not: it is driven by claude, sonnet already",
    ]
    assert (stage.until(9000), prompts(stage, "ann"), stage.fleet.run.moves) == ([], [], {})


def test_a_move_in_force_is_taken_back_by_another() -> None:
    stage = moving()
    stage.ask("operator", on.Restart(agent="ann", fresh=False), 4)
    stage.at(4, stage.exited("ann", Ending.INTERRUPTED))
    stage.at(5, stage.heard("ann"))
    stage.ask("operator", on.MoveAgent(agent="ann", wanted=Wanted(model="sonnet")), 6)
    stage.at(7, on.AgentPrepared(agent="ann", member=SONNET, was=OPUS))
    stage.at(8, stage.exited("ann", Ending.INTERRUPTED))
    assert in_force(RULES, stage.fleet.run).accounts == RULES.accounts
    assert prompts(stage, "ann") == [
        "The operator has moved you: you are driven by claude, sonnet now (before: claude, opus)."
    ]


@pytest.mark.parametrize(
    ("role", "was", "told"),
    [("Tune.", "", " Your role is now: Tune."), ("", "Tune.", " You have no role of your own any more.")],
)
def test_another_role_is_told(role: str, was: str, told: str) -> None:
    stage = moving(replace(SONNET, role=was), replace(OPUS, role=role))
    assert prompts(stage, "ann") == [MOVED + told]
    stage = moving(replace(OPUS, role=was), replace(OPUS, role=role))
    assert prompts(stage, "ann") == ["The operator has moved you: you are driven by claude, opus as before." + told]


def test_an_agent_at_its_limit_goes_on_with_another_account_and_the_probe_is_another() -> None:
    stage = fleet()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0), stage.exited("ben", Ending.LIMIT, until=100.0))
    assert stage["ann"].phase is stage["ben"].phase is Phase.PARKED
    stage.ask("operator", MOVE, 3)
    said = stage.at(4, on.AgentPrepared(agent="ann", member=OPUS, was=SONNET))
    assert said[-1] == "spawn ann/2: moved, session of ann, told 0, owed message:h1"
    assert stage["ben"].phase is Phase.PARKED
    stage.until(200)
    assert (stage.fleet.run.limits["work"].probe, stage["ben"].phase) == ("ben", Phase.RUNNING)


def test_the_probe_of_a_limit_that_moves_away_leaves_it_to_another() -> None:
    stage = fleet()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0), stage.exited("ben", Ending.LIMIT, until=100.0))
    stage.until(200)
    (probe,) = (limit.probe for limit in stage.fleet.run.limits.values())
    (other,) = {"ann", "ben"} - {probe}
    stage.at(201, stage.asks("operator", on.MoveAgent(agent=probe, wanted=Wanted(model="opus"))))
    stage.at(202, on.AgentPrepared(agent=probe, member=OPUS, was=SONNET))
    stage.at(203, stage.asks("operator", on.Restart(agent=probe, fresh=False)))
    stage.at(204, stage.exited(probe, Ending.INTERRUPTED))
    assert stage.fleet.run.limits["work"].probe in ("", other)
    stage.until(400)
    assert stage[other].phase is Phase.RUNNING


def test_a_move_of_an_added_agent_leaves_it_added() -> None:
    stage = joined()
    stage.at(4, stage.heard("agent-1"), stage.asks("operator", on.MoveAgent(agent="agent-1", wanted=Wanted(model="o"))))
    stage.at(5, on.AgentPrepared(agent="agent-1", member=OPUS, was=NATIVE))
    stage.ask("operator", on.Restart(agent="agent-1", fresh=False), 6)
    stage.at(7, stage.exited("agent-1", Ending.INTERRUPTED))
    former = (Former(through=1, runtime="native"),)
    assert stage.fleet.run.members["agent-1"] == replace(OPUS, added=True, former=former)
    assert (stage["agent-1"].phase, stage["agent-1"].launch) == (Phase.RUNNING, 2)
