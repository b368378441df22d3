"""Agents of one account, as transcripts: they stop together at its limit, one tries first, the others follow."""

from dataclasses import replace

import pytest
from stage import NAMES, QUIET_RULES, REFLECT, Stage, brief

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.agents.back_off import back_off
from coral.fleet.events import Ending
from coral.fleet.policy import JITTER_SECONDS, PROBE_SECONDS, RETURN_SECONDS
from coral.fleet.rules import Rules
from coral.fleet.run_state import Limit

SHARED = replace(QUIET_RULES, accounts=dict.fromkeys(NAMES, "acme"))


def limited(stage: Stage, clock: float = 2, until: float | None = 3600.0) -> float:
    """ann runs into the limit, the others are interrupted and end; when somebody tries again."""
    others = [name for name in stage.names if name != "ann"]
    said = stage.at(clock, stage.exited("ann", Ending.LIMIT, until=until))
    assert said[2:] == [f"interrupt {name}/{stage[name].launch}" for name in others]
    for name in others:
        assert stage.at(clock, stage.exited(name, Ending.INTERRUPTED)) == [
            f"exited {name}: launch 1 ended: interrupted"
        ]
    return stage.retry_at()


def trying(stage: Stage) -> float:
    """ann tries at the returned time, and is heard a second later."""
    at = limited(stage)
    stage.at(at)
    stage.at(at + 1, stage.heard("ann"))
    return at


def phases(stage: Stage) -> list[Phase]:
    return [stage[name].phase for name in stage.names]


def test_who_meets_the_limit_parks_all_of_its_account_and_nobody_else_with_one_alert() -> None:
    stage = Stage(3, SHARED)
    said = stage.at(2, stage.exited("ann", Ending.LIMIT, until=3600.0))
    assert said == [
        "exited ann: launch 1 ended: limit",
        "alert run-alert-1: acme has reached its usage limit; 3 agents are parked for 60.7 minutes",
        "interrupt ben/1",
        "interrupt cid/1",
    ]
    stage.at(3, stage.exited("ben", Ending.INTERRUPTED), stage.exited("cid", Ending.LIMIT, until=3600.0))
    assert phases(stage) == [Phase.PARKED] * 3
    assert [brief(stage[name].reason) for name in stage.names] == ["at limit"] * 3
    assert [stage[name].deadline for name in stage.names] == [None] * 3
    stage = Stage(3, replace(QUIET_RULES, accounts={"ann": "acme", "ben": "other", "cid": "acme"}))
    said = stage.at(2, stage.exited("ann", Ending.LIMIT, until=3600.0))
    assert said[1:] == [
        "alert run-alert-1: acme has reached its usage limit; 2 agents are parked for 60.7 minutes",
        "interrupt cid/1",
    ]
    assert stage["ben"].phase is Phase.RUNNING
    said = stage.at(3, stage.exited("ben", Ending.LIMIT, until=3600.0))
    assert said[1:] == ["alert run-alert-2: other has reached its usage limit; its agent is parked for 60.7 minutes"]


def test_nothing_is_asked_of_the_provider_before_its_reset_and_then_by_one() -> None:
    stage = Stage(4, SHARED)
    at = limited(stage)
    assert at == 3602 + JITTER_SECONDS * 183 / 255  # by the hash of who it was
    assert stage.until(at, including=False) == []
    assert stage.at(at) == [
        "probing ann: whether acme has usage again",
        "spawn ann/2: at limit, session of ann, told 0",
    ]
    assert stage.until(at + 500) == []


def test_the_others_come_back_one_by_one_when_the_first_has_gone_on_for_a_while() -> None:
    stage = Stage(3, SHARED)
    at = limited(stage)
    stage.at(at)
    stage.at(at + 5, stage.heard("ann"))
    stage.at(at + 6, stage.heard("ann", busy="tool"))
    over = at + 5 + PROBE_SECONDS
    assert stage.until(over, including=False) == []
    assert stage.at(over) == ["limit lifted: acme has usage again; 2 more agents come back"]
    assert phases(stage) == [Phase.RUNNING, Phase.WAITING, Phase.WAITING]
    assert stage.until(over + 10) == [
        f"{over + RETURN_SECONDS:g} spawn ben/2: limit over, session of ben, told 0",
        f"{over + 2 * RETURN_SECONDS:g} spawn cid/2: limit over, session of cid, told 0",
    ]
    assert stage.fleet.run.limits == {}


@pytest.mark.parametrize(("stagger", "between"), [(0.0, 2), (0.05, 2), (30.0, 30)])
def test_they_come_back_no_closer_together_than_they_were_started(stagger: float, between: float) -> None:
    stage = Stage(3, replace(SHARED, stagger=stagger), started=False)
    stage.until(100)
    stage.at(100, *(stage.heard(name) for name in stage.names))
    at = limited(stage, 101)
    stage.at(at)
    stage.at(at, stage.heard("ann"))
    over = at + PROBE_SECONDS
    stage.at(over)
    assert [stage[name].deadline for name in ("ben", "cid")] == [over + between, over + 2 * between]


def test_a_turn_that_ends_well_shows_as_much_and_one_that_a_heartbeat_ends_shows_nothing() -> None:
    stage = Stage(2, SHARED)
    at = trying(stage)
    said = stage.at(at + 2, stage.exited("ann", Ending.CLEAN))
    assert "limit lifted: acme has usage again; 1 more agents come back" in said
    assert stage.fleet.run.limits == {}
    stage = Stage(2, replace(SHARED, heartbeats=(REFLECT,)))
    at = trying(stage)
    stage.tried(at + 2, "ann", 1.0)
    stage.at(at + 3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.fleet.run.limits["acme"] == Limit(probe="ann", until=at + 1 + PROBE_SECONDS)
    assert stage["ann"].launch == 3


def test_the_one_who_tries_meets_the_limit_again_and_all_stay_parked() -> None:
    stage = Stage(2, SHARED)
    at = trying(stage)
    assert stage.at(at + 2, stage.exited("ann", Ending.LIMIT, until=7200.0)) == ["exited ann: launch 2 ended: limit"]
    again = stage.retry_at()
    assert at + 7202 <= again <= at + 7202 + JITTER_SECONDS
    assert phases(stage) == [Phase.PARKED] * 2
    assert stage.until(again, including=False) == []
    assert stage.at(again)[0] == "probing ann: whether acme has usage again"


def test_without_a_reset_the_tries_come_further_and_further_apart() -> None:
    stage = Stage(1, SHARED)
    waits, at = [], 2.0
    for _ in range(6):
        stage.at(at, stage.exited("ann", Ending.LIMIT))
        due = stage.retry_at()
        waits.append(due - at)
        stage.at(due)
        stage.at(due, stage.heard("ann"))
        at = due + 1
    least = [600 * factor for factor in (1, 2, 4, 8, 8, 8)]
    assert all(low <= wait <= low + JITTER_SECONDS for low, wait in zip(least, waits, strict=True))


def test_a_reset_is_not_believed_sooner_than_a_back_off() -> None:
    stage = Stage(1, SHARED)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=0.0))
    least = back_off("run", stage["ann"], 1, SHARED)
    assert stage.retry_at() == pytest.approx(2 + least * (1 + 0.1 * 183 / 255), abs=1e-9)
    stage = Stage(1, replace(SHARED, backoff=5000.0, backoff_max=5000.0))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=1.0))
    assert stage.retry_at() >= 5002


def test_the_latest_reset_of_one_wave_is_believed() -> None:
    stage = Stage(3, SHARED)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0))
    stage.at(3, stage.exited("ben", Ending.LIMIT, until=5000.0), stage.exited("cid", Ending.LIMIT))
    assert stage.fleet.run.limits["acme"].until == 5003
    stage = Stage(2, SHARED)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=5000.0))
    before = stage.fleet.run.limits["acme"]
    stage.at(3, stage.exited("ben", Ending.LIMIT, until=100.0))
    assert stage.fleet.run.limits["acme"] == before


def test_a_late_word_of_the_limit_does_not_disturb_the_one_who_tries() -> None:
    stage = Stage(2, SHARED)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=5.0))
    assert stage.fleet.run.limits["acme"].probe == ""
    stage.until(7.9)  # ben has still not ended
    at = stage.retry_at()
    stage.at(at)
    assert stage.fleet.run.limits["acme"].probe == "ann"
    stage.at(at, stage.exited("ben", Ending.LIMIT, until=9000.0))
    assert stage.fleet.run.limits["acme"] == Limit(probe="ann")
    assert stage["ben"].phase is Phase.PARKED


def test_one_who_crashes_while_it_tries_lets_another_try_after_its_back_off() -> None:
    stage = Stage(2, SHARED)
    at = trying(stage)
    stage.at(at + 2, stage.exited("ann", Ending.CRASHED, detail="oops"))
    due = stage.deadline("ann")
    assert stage.fleet.run.limits["acme"] == Limit(failed="ann", until=due)
    assert stage.until(due) == [
        f"{due:g} probing ben: whether acme has usage again",
        f"{due:g} spawn ben/2: at limit, session of ben, told 0",
    ]
    assert stage["ann"].phase is Phase.PARKED
    stage.at(due, stage.heard("ben"))
    assert stage.fleet.run.limits["acme"].until == due + PROBE_SECONDS


def test_if_the_one_who_tries_retires_another_does_and_if_all_have_nobody() -> None:
    stage = Stage(2, replace(SHARED, interrupt_grace=1.0, terminate_grace=1.0))
    at = limited(stage)
    stage.at(at)
    stage.at(at + 1, stage.lingered("ann"))
    said = stage.until(at + 70)
    assert any("unkillable" in line for line in said)
    assert [line.partition(" ")[2] for line in said][-2:] == [
        "probing ben: whether acme has usage again",
        "spawn ben/2: at limit, session of ben, told 0",
    ]
    rules = replace(QUIET_RULES, accounts={"ann": "acme"}, interrupt_grace=1.0, terminate_grace=1.0)
    stage = Stage(2, rules)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=50.0))
    at = stage.retry_at()
    stage.at(at)
    stage.at(at + 1, stage.heard("ann"))
    stage.at(at + 1, stage.heard("ben"), stage.lingered("ann"))
    said = stage.until(at + 70)
    assert "unkillable" in said[-1]
    assert stage.fleet.run.limits == {}


DOUBTING = replace(SHARED, backoff=10.0)


def test_if_the_one_who_tries_fails_for_a_reason_of_its_own_another_tries_after_a_pause() -> None:
    stage = Stage(3, DOUBTING)
    at = limited(stage)
    assert stage.at(at)[0] == "probing ann: whether acme has usage again"
    order = ["ann"]
    while len(order) < 6:
        at += 1
        stage.at(at, stage.exited(order[-1], Ending.CRASHED))
        failed = stage[order[-1]]
        limit = stage.fleet.run.limits["acme"]
        at += back_off("run", failed, failed.crashes, DOUBTING)
        assert limit == Limit(failed=failed.name, until=at)
        order += [line.split()[2].split("/")[0] for line in stage.until(at) if " spawn " in line]
    assert order == ["ann", "ben", "cid", "ben", "cid", "ann"]  # who met the limit has failed once more


def test_if_the_one_who_tries_is_silent_another_tries() -> None:
    stage = Stage(2, replace(DOUBTING, stall=20.0))
    at = limited(stage)
    assert stage.at(at)[0] == "probing ann: whether acme has usage again"
    assert stage.until(at + 20)[-1].endswith("interrupt ann/2")
    stage.at(at + 21, stage.exited("ann", Ending.INTERRUPTED))
    until = stage.fleet.run.limits["acme"].until
    assert stage.fleet.run.limits["acme"] == Limit(failed="ann", until=until)
    assert until is not None
    assert stage.at(until)[0] == "probing ben: whether acme has usage again"


def test_who_is_parked_tries_rather_than_who_waits_for_something_else() -> None:
    stage = Stage(2, replace(SHARED, backoff=100.0))
    stage.at(1.5, stage.exited("ann", Ending.CRASHED))
    at = stage.deadline("ann")
    stage.at(at)
    stage.at(at, stage.exited("ann", Ending.CRASHED))
    stage.at(at, stage.exited("ben", Ending.LIMIT, until=50.0))
    due = stage.retry_at()
    assert stage["ann"].deadline is not None
    assert stage["ann"].deadline > due
    assert stage.at(due)[0] == "probing ben: whether acme has usage again"


def test_a_crash_while_the_account_is_held_leads_to_parking_not_to_a_start() -> None:
    stage = Stage(2, SHARED)
    stage.at(2, stage.exited("ben", Ending.CRASHED))
    stage.at(3, stage.exited("ann", Ending.LIMIT, until=3600.0))
    assert stage["ben"].phase is Phase.WAITING
    assert stage.until(3000) == []
    assert (stage["ben"].phase, brief(stage["ben"].reason)) == (Phase.PARKED, "at limit")


@pytest.mark.parametrize("accounts", [{}, {"ann": "acme", "ben": "acme"}])
def test_a_run_may_end_at_a_limit_instead(accounts: dict[str, str]) -> None:
    stage = Stage(2, replace(QUIET_RULES, accounts=accounts, stop_at_limit=True))
    said = stage.at(2, stage.exited("ann", Ending.LIMIT, until=3600.0))
    assert said[-1] == "interrupt ben/1"
    assert brief(stage.fleet.run.stopping) == f"usage limit ({accounts.get('ann', 'ann')})"
    assert stage.at(3, stage.exited("ben", Ending.INTERRUPTED))[-1].startswith("finish: ")


def test_no_attempt_is_lost_to_parking_and_what_is_owed_goes_along_with_the_return() -> None:
    stage = Stage(2, replace(SHARED, heartbeats=(REFLECT,)))
    stage.in_grading(2, "ben")
    at = limited(stage, 3)
    stage.at(4, stage.graded(1, 1.0))
    assert stage.owed("ben") == ["reflect h1"]
    stage.at(at)
    stage.at(at, stage.heard("ann"))
    said = stage.until(at + 60)
    assert said[-1].endswith("spawn ben/2: limit over, session of ben, told 0, owed reflect:h1")


# --- resets that are never true -------------------------------------------------------------------------------------


def test_an_attempt_ends_the_doubts() -> None:
    stage = Stage(rules=replace(QUIET_RULES, backoff=100.0))
    for launch in range(3):
        stage.at(launch * 1000 + 2, stage.exited("ann", Ending.LIMIT, until=0.0))
        stage.until((launch + 1) * 1000)
        stage.at((launch + 1) * 1000, stage.heard("ann"))
    assert stage["ann"].crashes == 3
    stage.tried(3000, "ann", 1.0)
    assert stage["ann"].crashes == 0
    stage.at(3001, stage.exited("ann", Ending.LIMIT, until=0.0))
    assert stage["ann"].deadline is not None
    assert 100 <= stage["ann"].deadline - 3001 <= 120


def waits(rules: Rules, until: float | None) -> list[float]:
    """How long each of four limits in a row is waited out."""
    stage, found = Stage(1, rules), []
    for launch in range(1, 5):
        at = launch * 10_000.0
        stage.until(at)
        stage.at(at, stage.exited("ann", Ending.LIMIT, until=until))
        known = stage.fleet.run.limits.get("acme")
        due = stage["ann"].deadline if known is None else known.until
        assert due is not None
        found.append(due - at)
        stage.until(due)
        stage.at(due, stage.heard("ann"))
        stage.until(due + 600)
        stage.at(due + 600, stage.heard("ann"))
    return found


@pytest.mark.parametrize("rules", [QUIET_RULES, SHARED], ids=["alone", "shared"])
def test_a_reset_that_is_never_true_is_believed_less_each_time(rules: Rules) -> None:
    doubting = replace(rules, stall=1e6)
    low, high = (5, 10, 20, 40), (6.6, 13.2, 26.4, 52.8)
    assert all(a <= wait <= b for a, wait, b in zip(low, waits(doubting, 0.0), high, strict=True))
    # Further away than the back-off would be, it is believed.
    assert all(30 <= wait <= 33 for wait in waits(doubting, 30.0)[:3])


# --- an account that is closed for good -----------------------------------------------------------------------------


def test_a_wrong_key_ends_the_work_of_all_that_depend_on_it_with_one_alert() -> None:
    stage = Stage(4, replace(QUIET_RULES, accounts=dict.fromkeys(("ann", "ben", "cid"), "acme")))
    stage.at(1.5, stage.exited("cid", Ending.CRASHED))
    assert stage.at(2, stage.exited("ann", Ending.TERMINAL, detail="invalid key")) == [
        "exited ann: launch 1 ended: terminal",
        "alert run-alert-1: acme can no longer be used; its agents stop: given up (invalid key)",
        "retired ann: given up (invalid key)",
        "interrupt ben/1",
    ]
    said = stage.at(3, stage.exited("ben", Ending.TERMINAL, detail="invalid key"))
    assert said == ["exited ben: launch 1 ended: terminal", "retired ben: given up (invalid key)"]
    assert [line.partition(" ")[2] for line in stage.until(60)] == ["retired cid: given up (invalid key)"]
    assert phases(stage) == [Phase.RETIRED] * 3 + [Phase.RUNNING]
    assert stage.until(1000) == []
    # Those who are parked at its limit wait for nothing any more.
    stage = Stage(2, SHARED)
    until = limited(stage)
    stage.at(10, stage.exited("ben", Ending.INTERRUPTED))
    stage.until(until)
    assert phases(stage) == [Phase.RUNNING, Phase.PARKED]
    said = stage.at(stage.clock, stage.exited("ann", Ending.TERMINAL, detail="invalid key"))
    assert said[-2:] == ["retired ben: given up (invalid key)", "finish: all retired"]
    stage = Stage(2, SHARED)
    stage.at(2, stage.exited("ann", Ending.TERMINAL, detail="invalid key"))
    assert stage.at(3, stage.exited("ben", Ending.INTERRUPTED))[-1] == "finish: all retired"
    said = stage.at(4, on.Resumed())
    assert [line for line in said if "spawn" in line] == [
        "spawn ann/2: resumed, session of ann, told 0",
        "spawn ben/2: resumed, session of ben, told 0",
    ]


# --- restarts -------------------------------------------------------------------------------------------------------


def test_the_reset_comes_nearer_while_nobody_supervises_but_not_what_the_one_who_tries_has_to_show() -> None:
    stage = Stage(2, SHARED)
    at = limited(stage)
    stage.stop(10, "night")
    stage.at(11, on.Resumed(away=1000.0))
    assert stage.fleet.run.limits["acme"].until == at - 1000
    assert "probing ann: whether acme has usage again" in stage.at(12, on.Resumed(away=1e6))
    stage = Stage(2, SHARED)
    at = trying(stage)
    stage.at(at + 2, on.Resumed(away=1e6))
    assert stage.fleet.run.limits["acme"] == Limit(probe="ann", until=at + 1 + PROBE_SECONDS)


def test_after_a_restart_that_cost_the_one_who_tries_its_launch_another_tries() -> None:
    stage = Stage(2, SHARED)
    at = limited(stage)
    stage.at(at)
    said = stage.at(at + 1, on.Resumed(), stage.exited("ann", Ending.LOST))
    assert said[-1] == "exited ann: launch 2 ended: lost"
    until = at + 1 + back_off("run", stage["ann"], stage["ann"].crashes + 1, SHARED)
    assert stage.fleet.run.limits["acme"] == Limit(failed="ann", until=until)
    assert [stage[name].phase for name in stage.names] == [Phase.PARKED, Phase.PARKED]
    assert stage.until(until)[0].endswith("probing ben: whether acme has usage again")


def test_who_was_parked_for_an_account_that_the_task_no_longer_has_starts() -> None:
    stage = Stage(2, SHARED)
    limited(stage)
    stage.rules = replace(SHARED, accounts={})
    said = stage.at(9, on.Resumed())
    assert [line.partition(":")[0] for line in said if "spawn" in line] == ["spawn ann/2", "spawn ben/2"]


def test_the_limit_of_an_account_that_no_agent_has_any_more_is_over_at_its_reset() -> None:
    stage = Stage(2, SHARED)
    at = limited(stage, until=300.0)
    stage.rules = replace(SHARED, accounts={})
    stage.at(9, on.Resumed())
    stage.at(at - 1)
    assert stage.fleet.run.limits == {"acme": Limit(until=at)}
    stage.at(at)
    assert stage.fleet.run.limits == {}


def test_the_figures_are_those_that_people_are_told() -> None:
    stage = Stage(2, SHARED)
    at = limited(stage)
    assert at == 3602 + 60.0 * 183 / 255
    stage.stop(10, "night")
    stage.at(11, on.Resumed())  # nobody knows how long it was: the reset stays where it was
    assert stage.fleet.run.limits["acme"].until == at
    stage.at(at)
    stage.at(at, stage.heard("ann"))
    assert stage.fleet.run.limits["acme"].until == at + 30
    stage.at(at + 30)
    assert stage["ben"].deadline == at + 30 + 2
