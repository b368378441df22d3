"""What is owed where an agent waits for its grade, as transcripts: at the end of `coral eval`, printed or not."""

from dataclasses import replace

import pytest
from stage import CHECKPOINT, REFLECT, TIP, Stage, rules_with

from coral.fleet import events as on
from coral.fleet.events import Ending
from heartbeats.heartbeat import Delivery, Heartbeat
from heartbeats.trigger import Stagnant

REDIRECT = Heartbeat(name="redirect", trigger=Stagnant(1))


# --- at the end of `coral eval` ---------------------------------------------------------------------------------------


def test_everything_owed_goes_along_at_the_end_of_an_eval() -> None:
    stage = Stage(rules=replace(rules_with(REFLECT, CHECKPOINT), stall=9e9))
    assert stage.until(1800) == []
    stage.at(1801, stage.asks("operator", on.Tell(to="ann", text="be quick")))
    assert stage.owed("ann") == ["checkpoint h1", "message h2"]
    assert stage.tried(1802, "ann", 1.0, wait=60) == [
        "publish #1 improved 1, then checkpoint message reflect",
        "interrupt ann/1",
    ]
    assert {message.due for message in stage["ann"].pending_messages} == {1802}


@pytest.mark.parametrize("busy", ["tool", "thinking"])
def test_the_end_of_an_eval_is_a_good_moment_though_the_eval_is_a_tool(busy: str) -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(1800)
    stage.at(1801, stage.heard("ann", busy=busy))
    assert stage.tried(1802, "ann", 1.0, wait=60) == ["publish #1 improved 1, then checkpoint", "interrupt ann/1"]


def test_who_does_not_wait_at_the_eval_or_did_in_the_past_is_not_told_there() -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(1800)
    assert stage.tried(1802, "ann", 1.0) == ["publish #1 improved 1"]
    (number,) = stage.in_grading(1803, "ann", wait=10)
    assert stage.at(1813, stage.graded(number, 2.0)) == ["publish #2 improved 2"]
    (number,) = stage.in_grading(1814, "ann", wait=10)
    assert stage.at(1823.9, stage.graded(number, 3.0)) == ["publish #3 improved 3, then checkpoint", "interrupt ann/1"]
    stage = Stage(rules=rules_with(TIP))
    assert stage.tried(2, "ann", 1.0, wait=-5) == ["publish #1 improved 1", "interrupt ann/1"]
    assert stage["ann"].pending_messages[0].printed is False
    assert Stage(rules=rules_with(TIP)).tried(2, "ann", 1.0) == ["publish #1 improved 1", "interrupt ann/1"]


def test_whoever_waited_in_an_eval_is_gone_with_its_launch() -> None:
    # The next launch was told that its `coral eval` prints something; it was running none.
    stage = Stage(rules=rules_with(TIP))
    stage.in_grading(2, "ann", wait=600)
    stage.at(3, stage.exited("ann"))
    stage.at(3, stage.heard("ann"))
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 improved 1", "interrupt ann/2"]


def test_what_a_launch_was_handed_is_not_told_at_its_eval_too() -> None:
    stage = Stage(rules=rules_with(REFLECT, REDIRECT))
    stage.tried(2, "ann", -1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage["ann"].in_flight == ("h1", "h2")
    assert stage.tried(4, "ann", 1.0, wait=60) == ["publish #2 improved 1, then reflect"]
    # Its first words were not heard yet; as soon as they are, it is interrupted.
    assert stage.at(5, stage.heard("ann")) == ["heartbeat ann: reflect, redirect (h1, h2) received", "interrupt ann/2"]


# --- inline -----------------------------------------------------------------------------------------------------------


def test_an_inline_heartbeat_is_printed_once_and_acknowledged_by_the_eval_or_goes_along_with_an_interrupt() -> None:
    stage = Stage(rules=rules_with(TIP))
    assert stage.tried(2, "ann", 1.0, wait=60) == ["publish #1 improved 1, printing tip:h1"]
    assert stage.at(3, stage.asks("ann", on.Acknowledge(messages=("h1",)))) == [
        "heartbeat ann: tip (h1) received",
        "answer ann/1: yes, acknowledged",
    ]
    assert stage["ann"].pending_messages == ()
    assert stage.until(100) == []
    stage = Stage(rules=rules_with(TIP, REFLECT))
    assert stage.tried(2, "ann", 1.0, wait=60) == ["publish #1 improved 1, then tip reflect", "interrupt ann/1"]


def test_what_was_printed_and_not_acknowledged_interrupts() -> None:
    stage = Stage(rules=rules_with(TIP))
    stage.tried(2, "ann", 1.0, wait=60)
    assert stage.until(31.9) == []
    assert stage.until(32) == ["32 interrupt ann/1"]
    assert stage.resumed("ann", 33)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed tip:h1",
        "heartbeat ann: tip (h1) received",
    ]
    # An acknowledgement that comes late has nothing left to do.
    assert stage.at(34, stage.asks("ann", on.Acknowledge(messages=("h1",)))) == ["answer ann/1: yes, acknowledged"]


def test_two_evals_that_end_at_once_print_each_its_own() -> None:
    # What the first had printed interrupted the agent at the second, before it could be acknowledged.
    stage = Stage(rules=rules_with(TIP))
    stage.in_grading(2, "ann", "ann", wait=60)
    assert stage.at(3, stage.graded(1, 1.0), stage.graded(2, 2.0)) == [
        "publish #1 improved 1, printing tip:h1",
        "publish #2 improved 2, printing tip:h2",
    ]
    assert stage.at(4, stage.asks("ann", on.Acknowledge(messages=("h2", "h1")))) == [
        "heartbeat ann: tip (h1, h2) received",
        "answer ann/1: yes, acknowledged",
    ]


def test_what_was_printed_and_never_acknowledged_goes_with_the_next_eval_s_interrupt() -> None:
    stage = Stage(rules=replace(rules_with(TIP), interrupt_grace=9e9))
    stage.tried(2, "ann", 1.0, wait=60)
    # The agent has no session to interrupt: it waits, and submits again when the time is over.
    stage.fleet = replace(stage.fleet, agents={"ann": replace(stage["ann"], has_output=False, spawned_at=31.0)})
    assert stage.tried(32, "ann", 2.0, wait=60) == ["publish #2 improved 2, then tip"]


def test_an_inline_heartbeat_of_the_clock_is_printed_at_the_next_eval() -> None:
    stage = Stage(rules=replace(rules_with(replace(CHECKPOINT, delivery=Delivery.INLINE)), stall=9e9))
    assert stage.until(1800) == []
    assert stage.tried(1900, "ann", 1.0, wait=60) == ["publish #1 improved 1, printing checkpoint:h1"]
    assert stage.at(1901, stage.asks("ann", on.Acknowledge(messages=("h1",))))[0] == (
        "heartbeat ann: checkpoint (h1) received"
    )
    assert stage["ann"].awaiting_reply == ("checkpoint",)


def test_an_agent_acknowledges_what_it_was_handed_and_not_what_is_about_to_interrupt_it() -> None:
    # It could: the ids are easily guessed, and whoever acknowledged in time never reflected.
    stage = Stage(rules=rules_with(REFLECT, TIP))
    stage.tried(2, "ann", 1.0)
    assert stage.at(2, stage.asks("ann", on.Acknowledge(messages=("h1", "h2", "h3")))) == [
        "answer ann/1: yes, acknowledged"
    ]
    assert stage.owed("ann") == ["reflect h1", "tip h2"]
    stage = Stage(rules=rules_with(TIP))
    stage.tried(2, "ann", 1.0, wait=60)
    stage.at(3, stage.exited("ann"))
    assert stage["ann"].in_flight == ("h1",)
    stage.at(4, stage.asks("ann", on.Acknowledge(messages=("h1",))))
    assert (stage["ann"].pending_messages, stage["ann"].in_flight) == ((), ())
    assert stage.at(5, stage.heard("ann")) == []
