"""Programs that only ask their model again, as transcripts: ended by our clock or by a count, and taken for crashed."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, brief

from coral.fleet import events as on
from coral.fleet.agent_state import OutputCounts, Phase
from coral.fleet.agents.back_off import back_off
from coral.fleet.events import Ending
from coral.fleet.rules import Rules

RULES = replace(QUIET_RULES, outage=90.0, retries=5, breaker_crashes=2)


def retries(stage: Stage, count: int, answered: int = 0, agent: str = "ann") -> on.OutputSeen:
    return stage.heard(agent, count=OutputCounts(retries=count, answered=answered))


def test_nothing_but_retries_for_too_long_is_a_crash_that_waits() -> None:
    stage = Stage(rules=RULES)
    stage.at(10, retries(stage, 1))
    stage.at(40, retries(stage, 2))
    assert stage.until(100) == ["100 outage ann: launch 1: outage (90)", "100 interrupt ann/1"]
    assert stage.at(101, stage.exited("ann", Ending.INTERRUPTED)) == [
        "exited ann: launch 1 ended: interrupted",
        "crashed ann: launch 1: outage (90)",
    ]
    agent = stage["ann"]
    assert (agent.phase, brief(agent.reason), agent.crashes) == (Phase.WAITING, "outage (90)", 1)
    assert agent.deadline == 101 + back_off("run", agent, 1, RULES)
    (said,) = stage.until(110)
    assert said.endswith("spawn ann/2: outage (90), session of ann, told 0")
    # The next launch begins to count anew.
    stage.at(112, retries(stage, 1))
    assert stage["ann"].retrying_since == 112


def test_so_many_retries_in_a_row_are_enough() -> None:
    stage = Stage(rules=RULES)
    assert stage.at(10, retries(stage, 4)) == []
    assert stage.at(11, retries(stage, 5)) == ["outage ann: launch 1: outage (5)", "interrupt ann/1"]
    stage = Stage(2, RULES)
    stage.at(10, retries(stage, 5), retries(stage, 5, agent="ben"))
    said = stage.at(11, stage.exited("ann", Ending.INTERRUPTED), stage.exited("ben", Ending.INTERRUPTED))
    assert said[-1].startswith("alert run-alert-1: 2 crashes within 60 seconds; nothing starts for 300 seconds.")


def test_an_answer_ends_the_row_also_after_the_interrupt() -> None:
    stage = Stage(rules=RULES)
    stage.at(10, retries(stage, 4))
    stage.at(50, retries(stage, 4, answered=4))
    assert stage["ann"].retrying_since is None
    stage.at(60, retries(stage, 8, answered=4))
    assert stage.until(149) == []
    assert stage.until(150)[0] == "150 outage ann: launch 1: outage (90)"
    stage = Stage(rules=RULES)
    stage.at(10, retries(stage, 1))
    stage.at(60, retries(stage, 2, answered=1))
    assert stage["ann"].retrying_since == 60
    # Told again, it is no other.
    stage.at(70, retries(stage, 2, answered=1), retries(stage, 1))
    assert stage["ann"].retrying_since == 60
    stage = Stage(rules=RULES)
    stage.at(11, retries(stage, 5))
    stage.at(12, retries(stage, 5, answered=5))
    said = stage.at(13, stage.exited("ann", Ending.INTERRUPTED))
    assert said[1:] == ["spawn ann/2: outage (5), session of ann, told 0"]
    assert stage["ann"].crashes == 0


@pytest.mark.parametrize("rules", [replace(RULES, retries=1_000_000), replace(RULES, outage=9e9)])
def test_each_bound_stands_alone(rules: Rules) -> None:
    stage = Stage(rules=rules)
    said = stage.at(10, retries(stage, 6)) + stage.until(100)
    assert len([line for line in said if "interrupt" in line]) == 1


def test_a_retrying_launch_that_gives_up_by_itself_crashes_and_one_that_is_stopped_does_not() -> None:
    stage = Stage(rules=RULES)
    stage.at(10, retries(stage, 2))
    stage.stop(11)
    stage.at(12, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].crashes, brief(stage["ann"].reason)) == (0, "stop")
    stage = Stage(rules=RULES)
    stage.at(10, retries(stage, 2))
    assert (
        stage.at(11, stage.exited("ann", Ending.CRASHED, "overloaded"))[1]
        == "crashed ann: launch 1: crashed (overloaded)"
    )


def at_its_limit(rules: Rules) -> Stage:
    stage = Stage(2, replace(rules, accounts={"ann": "acme", "ben": "acme"}))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0), stage.exited("ben", Ending.LIMIT, until=100.0))
    return stage


def test_a_retry_is_no_word_of_usage_being_there_again() -> None:
    stage = at_its_limit(replace(RULES, breaker_crashes=99))
    said = stage.until(200)
    assert said[0].endswith("probing ann: whether acme has usage again")
    stage.at(201, retries(stage, 3))
    assert stage.fleet.run.limits["acme"].until is None
    # Cut off, it has tried in vain, and after a pause the other tries; it waits.
    stage.at(202, retries(stage, 5))
    stage.at(203, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage.fleet.run.limits["acme"].probe, stage.fleet.run.limits["acme"].failed) == ("", "ann")
    said = stage.until(300)
    assert [line.split(":")[0].split(" ", 1)[1] for line in said] == ["probing ben", "spawn ben/2"]
    stage.at(301, stage.heard("ben"))
    assert stage.until(331)[0] == "331 limit lifted: acme has usage again; 1 more agents come back"


def test_a_probe_that_was_heard_and_is_cut_off_lifts_nothing() -> None:
    stage = at_its_limit(RULES)
    stage.until(200)
    stage.at(201, stage.heard("ann"))
    assert stage.fleet.run.limits["acme"].until == 231
    stage.at(202, retries(stage, 5))
    stage.at(203, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.fleet.run.limits["acme"].failed == "ann"
