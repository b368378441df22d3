"""Heartbeats that the clock sets off, as transcripts: once at a time, with a reason where a period is left out."""

from dataclasses import replace

import pytest
from stage import CHECKPOINT, QUIET_RULES, REFLECT, Stage, on_request, rules_with

from coral.fleet import events as on
from coral.fleet.agent_state import Spent
from coral.fleet.events import Ending, Outcome
from heartbeats.heartbeat import Heartbeat, Scope
from heartbeats.trigger import Elapsed, Every

CONSOLIDATE = Heartbeat(name="consolidate", trigger=Every(10), scope=Scope.FLEET, protected=True)
HOURLY = Heartbeat(name="hourly", trigger=Elapsed(3600), scope=Scope.FLEET, prompt="look at the clock")


def asked() -> Stage:
    """ann was asked for the checkpoint of 1800 at 2401, and has heard of it."""
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(2400)
    stage.resumed("ann", 2401)
    return stage


def test_a_checkpoint_is_owed_every_half_hour_and_never_twice_before_it_is_delivered() -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9, max_defer=2000.0))
    assert stage.until(1800) == []
    (owed,) = stage["ann"].pending_messages
    assert (owed.id, owed.name, owed.since, owed.due, owed.attempt, owed.defers) == (
        "h1",
        "checkpoint",
        1800,
        3800,
        None,
        True,
    )
    assert stage.until(3700) == ["3600 skipped ann: checkpoint: undelivered"]
    assert stage.owed("ann") == ["checkpoint h1"]
    assert stage.until(3800) == ["3800 interrupt ann/1"]
    assert stage.fleet.agents["ann"].targets == {"checkpoint": 5400}


def test_periods_that_were_missed_are_not_made_up_for_and_who_owes_a_lot_is_not_asked_for_more() -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9, max_defer=9e9))
    stage._decide(7000, ())
    assert stage.owed("ann") == ["checkpoint h1"]
    assert stage["ann"].targets == {"checkpoint": 8800}
    hearts = [Heartbeat(name=f"h-{place}", trigger=Every(1), prompt="?") for place in range(5)]
    stage = Stage(rules=replace(rules_with(CHECKPOINT, *hearts[:4]), stall=9e9, interrupt_grace=9e9))
    stage.tried(2, "ann", 1.0)
    assert stage.until(1800) == []
    assert stage.owed("ann")[4:] == ["checkpoint h5"]
    stage = Stage(rules=replace(rules_with(CHECKPOINT, *hearts), stall=9e9, interrupt_grace=9e9))
    stage.tried(2, "ann", 1.0)
    assert stage.until(1800) == ["1800 skipped ann: checkpoint: saturated (5)"]


@pytest.mark.parametrize("reply", ["still looking", ""])
def test_a_checkpoint_that_was_not_answered_leaves_the_next_one_out(reply: str) -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(2400)
    assert stage.resumed("ann", 2401)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed checkpoint:h1",
        "heartbeat ann: checkpoint (h1) received",
    ]
    assert stage["ann"].awaiting_reply == ("checkpoint",)
    assert stage.at(2500, stage.heard("ann", reply=reply)) == []
    assert stage.until(3600) == ["3600 skipped ann: checkpoint: unanswered"]
    # A launch that is over will not answer any more.
    stage.at(3700, stage.exited("ann"))
    assert stage["ann"].awaiting_reply == ()
    assert stage.until(5400) == []
    assert stage.owed("ann") == ["checkpoint h2"]


def test_an_answer_makes_room_for_the_next_checkpoint() -> None:
    stage = asked()
    assert stage.at(2500, stage.heard("ann", reply="All is well.\nHEARTBEAT_OK")) == []
    assert stage["ann"].awaiting_reply == ()
    assert stage.until(3600) == []
    assert stage.owed("ann") == ["checkpoint h2"]
    stage.until(4200)
    stage.resumed("ann", 4201)
    assert stage.at(4300, stage.heard("ann", reply="ALERT: the disk is nearly full")) == [
        "alert run-alert-1 of ann: the disk is nearly full"
    ]
    assert stage["ann"].awaiting_reply == ()
    # Nobody asked: what sounds like an answer is talk.
    assert stage.at(4301, stage.heard("ann", reply="ALERT: again")) == []
    stage = asked()
    stage.until(3600)
    assert stage["ann"].unanswered_checkpoints == 1
    stage.at(3601, stage.heard("ann", reply="ALERT: no disk"))
    assert stage["ann"].unanswered_checkpoints == 0


def test_checkpoints_that_are_left_unanswered_in_a_row_raise_one_alert() -> None:
    stage = asked()
    left_out = "skipped ann: checkpoint: unanswered"
    # Unanswered at the next, at the one after, and at its end: three times in a row.
    assert stage.until(5400) == [f"3600 {left_out}", f"5400 {left_out}"]
    assert stage.at(5500, stage.exited("ann"))[:2] == [
        "exited ann: launch 2 ended: clean",
        "alert run-alert-1 of ann: ann has left 3 checkpoints in a row unanswered: heartbeat failed (3)",
    ]
    stage.at(5501, stage.heard("ann"))
    stage.until(7800)
    stage.resumed("ann", 7801)
    assert stage.until(9000) == [f"9000 {left_out}"]
    assert stage["ann"].unanswered_checkpoints == 4
    # An answer ends the row.
    stage.at(9001, stage.heard("ann", reply="HEARTBEAT_OK"))
    assert stage["ann"].unanswered_checkpoints == 0
    stage.until(11_400)
    stage.resumed("ann", 11_401)
    stage.at(11_402, stage.exited("ann"))
    assert stage["ann"].unanswered_checkpoints == 1


def test_a_turn_that_ended_well_and_printed_nothing_left_its_checkpoint_unanswered() -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(2400)
    stage.at(2401, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.at(2402, stage.exited("ann"))[:2] == [
        "exited ann: launch 2 ended: clean",
        "heartbeat ann: checkpoint (h1) received",
    ]
    assert (stage["ann"].awaiting_reply, stage["ann"].unanswered_checkpoints) == ((), 1)


def test_a_checkpoint_that_a_stop_left_no_time_to_answer_is_held_against_nobody() -> None:
    stage = asked()
    assert stage["ann"].awaiting_reply == ("checkpoint",)
    stage.ask("operator", on.Stop(end=on_request("enough")), 2410)
    stage.at(2411, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].awaiting_reply, stage["ann"].unanswered_checkpoints) == ((), 0)
    # Who leaves it unanswered without a stop still does.
    stage.at(2500, on.Resumed())
    stage.at(2501, stage.heard("ann"))
    stage.until(4200)
    stage.resumed("ann", 4201)
    stage.at(4202, stage.exited("ann"))
    assert stage["ann"].unanswered_checkpoints == 1


def test_an_answer_that_is_read_again_answers_nothing_else() -> None:
    stage = asked()
    answer = replace(stage.heard("ann", reply="HEARTBEAT_OK"), place=30)
    stage.at(2500, answer)
    assert (stage["ann"].awaiting_reply, stage["ann"].output_searched_to) == ((), 30)
    stage.fleet = replace(stage.fleet, agents={"ann": replace(stage["ann"], awaiting_reply=("tip",))})
    # A new supervisor reads from the beginning what the launch has printed.
    stage.at(2600, on.Resumed(), replace(answer, place=29), answer)
    assert (stage["ann"].awaiting_reply, stage["ann"].output_searched_to) == (("tip",), 30)
    stage.at(2601, replace(answer, place=31))
    assert (stage["ann"].awaiting_reply, stage["ann"].output_searched_to) == ((), 31)
    # What another launch printed stands in another file.
    stage.at(2700, stage.exited("ann"))
    stage.until(2720)
    assert (stage["ann"].launch, stage["ann"].output_searched_to) == (3, 0)


def test_the_clock_goes_on_for_who_waits_and_stops_for_who_retired() -> None:
    stage = Stage(2, replace(rules_with(CHECKPOINT), stall=9e9))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=4000.0), stage.exited("ben", Ending.TERMINAL))
    # While an agent is parked it is asked for nothing, and it need not catch up.
    assert stage.until(1900) == ["1800 skipped ann: checkpoint: is parked"]
    assert (stage.owed("ann"), stage.owed("ben")) == ([], [])
    assert stage.until(4002) == [
        "3600 skipped ann: checkpoint: is parked",
        "4002 spawn ann/2: at limit, session of ann, told 0",
    ]
    stage.at(4003, stage.heard("ann"))
    assert stage.until(5400) == []
    assert stage.owed("ann") == ["checkpoint h1"]
    stage = Stage(rules=replace(rules_with(CHECKPOINT, REFLECT), stall=9e9))
    stage.tried(1799, "ann", 1.0)
    assert stage.until(1800) == []
    assert stage.at(1801, stage.exited("ann", Ending.INTERRUPTED))[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1 checkpoint:h2"
    ]


def test_what_the_fleet_s_clock_sets_off_falls_to_the_next_who_submits() -> None:
    # Nothing looked at the clock for the fleet: a task could ask for it, and it never came.
    stage = Stage(2, replace(rules_with(HOURLY), stall=9e9))
    assert stage.until(3600) == []
    assert [message.name for message in stage.fleet.run.unassigned_messages] == ["hourly"]
    assert stage.until(7200) == ["7200 skipped: hourly: undelivered"]
    assert stage.tried(7201, "ben", 1.0) == ["publish #1 new best 1", "interrupt ben/1"]
    assert stage.owed("ben") == ["hourly h1"]
    assert stage.until(7203) == []
    # It is still owed, though no longer an orphan.
    stage.at(7204, stage.exited("ben", Ending.LIMIT, until=9000.0))
    assert stage.until(10800) == ["10800 skipped: hourly: undelivered"]
    assert stage.fleet.run.targets == {"hourly": 14400}
    stage = Stage(
        rules=replace(rules_with(HOURLY, replace(CONSOLIDATE, trigger=Every(1))), stall=9e9, interrupt_grace=9e9)
    )
    stage.tried(2, "ann", 1.0)
    assert stage.until(3600) == []
    assert [message.name for message in stage.fleet.run.unassigned_messages] == ["hourly"]


def test_own_and_fleet_s_heartbeats_of_one_name_do_not_stand_in_each_other_s_way() -> None:
    of_fleet = Heartbeat(name="tick", trigger=Every(1), scope=Scope.FLEET, prompt="all")
    own = Heartbeat(name="tick", trigger=Elapsed(60), prompt="one")
    stage = Stage(rules=replace(rules_with(of_fleet), stall=9e9, interrupt_grace=9e9))
    entry = {"name": "tick", "seconds": 60, "prompt": "one"}
    assert stage.at(2, stage.asks("ann", on.SetHeartbeat(owner="ann", entry=entry))) == [
        "show ann",
        "answer ann/1: yes, tick: every minute",
    ]
    assert stage.fleet.heartbeats["ann"] == (replace(own, by="ann"),)
    stage.tried(3, "ann", 1.0)
    assert stage.until(62) == []
    assert stage.owed("ann") == ["tick h1", "tick h2"]
    # Only the clock's asks for an answer.
    stage.at(63, stage.exited("ann", Ending.INTERRUPTED))
    stage.at(64, stage.heard("ann"))
    assert stage["ann"].awaiting_reply == ("tick",)


def test_only_the_clock_s_heartbeats_ask_for_an_answer_and_a_lost_grade_sets_off_none() -> None:
    stage = Stage(rules=rules_with(Heartbeat(name="tick", trigger=Every(1), prompt="all")))
    stage.at(1, stage.asks("operator", on.Tell(to="ann", text="hello")))
    stage.tried(3, "ann", 1.0)
    stage.resumed("ann", 4)
    assert stage["ann"].pending_messages == ()
    assert stage["ann"].awaiting_reply == ()
    stage = Stage(rules=rules_with(REFLECT))
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=Outcome.LOST))
    assert stage.owed("ann") == []


def test_who_is_about_to_land_is_asked_for_no_checkpoint() -> None:
    rules = replace(rules_with(CHECKPOINT), stall=9e9, max_defer=9e9, budget_tokens=100)
    for used, said in ((94, []), (95, ["1800 skipped ann: checkpoint: lands"])):
        stage = Stage(rules=rules)
        stage.at(1, stage.heard("ann"), on.Used(agent="ann", launch=1, figure=Spent(output=used)))
        stage.resumed("ann", 2)
        assert stage.until(1800) == said
        assert stage.owed("ann") == ([] if said else ["checkpoint h2"])


def test_what_an_agent_ends_its_turn_with_instead_of_an_answer_is_an_alert_by_its_first_line() -> None:
    stage = asked()
    assert stage.at(2500, stage.heard("ann", reply="I look at the disk.")) == []
    assert stage.at(2510, stage.heard("ann", reply="**The data are gone.**\nI could not train.")) == []
    assert stage.at(2600, stage.exited("ann"))[:2] == [
        "exited ann: launch 2 ended: clean",
        "alert run-alert-1 of ann: **The data are gone.**",
    ]
    assert (stage["ann"].unanswered_checkpoints, stage["ann"].last_words) == (0, "")


@pytest.mark.parametrize("ending", [Ending.INTERRUPTED, Ending.CRASHED])
def test_what_an_agent_said_in_the_middle_of_a_turn_is_no_alert(ending: Ending) -> None:
    stage = asked()
    stage.at(2500, stage.heard("ann", reply="I look at the disk."))
    assert not [line for line in stage.at(2600, stage.exited("ann", ending)) if "alert" in line]
    assert (stage["ann"].unanswered_checkpoints, stage["ann"].last_words) == (1, "")


def test_what_an_agent_said_before_it_was_interrupted_is_no_alert_though_its_program_ends_well() -> None:
    stage = asked()
    stage.at(2500, stage.heard("ann", reply="I look at the disk."))
    stage.ask("operator", on.Pause(agent="ann"), 2550)
    assert not [line for line in stage.at(2555, stage.exited("ann")) if "alert" in line]
    assert stage["ann"].unanswered_checkpoints == 1


@pytest.mark.parametrize("reply", ["HEARTBEAT_OK", "All is well.\n\n**HEARTBEAT_OK**", "HEARTBEAT_OK\nI go on now."])
def test_heartbeat_ok_reaches_nobody(reply: str) -> None:
    stage = asked()
    stage.at(2450, stage.heard("ann", reply="I look at the disk."))
    assert stage.at(2500, stage.heard("ann", reply=reply)) == []
    assert stage["ann"].last_words == ""
    assert not [line for line in stage.at(2600, stage.exited("ann")) if "alert" in line]


def test_an_alert_by_last_words_ends_a_row_of_unanswered_checkpoints() -> None:
    stage = asked()
    stage.fleet = replace(stage.fleet, agents={"ann": replace(stage["ann"], unanswered_checkpoints=2)})
    stage.at(2500, stage.heard("ann", reply="The data are gone."))
    stage.at(2600, stage.exited("ann"))
    assert stage["ann"].unanswered_checkpoints == 0


def test_the_alert_of_failed_checkpoints_has_the_last_error() -> None:
    stage = asked()
    stage.until(5400)
    stage.at(5500, stage.exited("ann", Ending.CRASHED, "boom"))
    alerts = [alert for alert in stage.fleet.run.undelivered_alerts if alert.reason is not None]
    assert [(alert.reason.kind.value, alert.reason.detail) for alert in alerts if alert.reason] == [
        ("heartbeat_failed", "boom")
    ]


@pytest.mark.parametrize("ending", [Ending.CLEAN, Ending.INTERRUPTED])
def test_the_last_error_is_forgotten_when_a_launch_has_ended_well(ending: Ending) -> None:
    stage = Stage(rules=QUIET_RULES)
    stage.at(2, stage.exited("ann", Ending.CRASHED, "boom"))
    stage.until(50)
    # One that nobody saw end, or that came to an end before its first word, says nothing of it.
    stage.at(50, stage.exited("ann", ending))
    assert stage["ann"].last_error == "boom"
    stage.until(200)
    stage.at(200, stage.heard("ann"))
    stage.at(201, stage.exited("ann", Ending.LOST))
    assert stage["ann"].last_error == "boom"
    stage.until(300)
    stage.at(300, stage.heard("ann"))
    stage.at(301, stage.exited("ann", ending))
    assert stage["ann"].last_error == ""


def test_the_alert_of_failed_checkpoints_has_an_error_that_stood_until_then() -> None:
    stage = asked()
    stage.fleet = replace(
        stage.fleet, agents={"ann": replace(stage["ann"], unanswered_checkpoints=2, last_error="boom")}
    )
    stage.at(2600, stage.exited("ann"))
    (alert,) = stage.fleet.run.undelivered_alerts
    assert (alert.reason and alert.reason.detail, stage["ann"].last_error) == ("boom", "")
