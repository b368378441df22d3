"""How what is owed reaches an agent, as transcripts: by interrupt and resume, at the end of `coral eval`, inline."""

from dataclasses import replace

import pytest
from stage import CHECKPOINT, REFLECT, TIP, Stage, rules_with

from coral.fleet import actions as do, events as on
from coral.fleet.events import Ending
from heartbeats.heartbeat import Delivery, Heartbeat
from heartbeats.trigger import Every, Stagnant

REDIRECT = Heartbeat(name="redirect", trigger=Stagnant(1))


def handed_over() -> Stage:
    """ann's second launch, of which nothing is heard yet, was handed what the first one owed."""
    stage = Stage(rules=rules_with(REFLECT))
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    return stage


# --- by interrupt and resume --------------------------------------------------------------------------------------


def test_an_agent_is_interrupted_resumed_with_all_that_is_owed_and_acknowledges_it_by_its_first_words() -> None:
    stage = Stage(rules=rules_with(REFLECT, REDIRECT))
    assert stage.tried(2, "ann", -1.0, wait=60) == ["publish #1 worse -1, then reflect redirect", "interrupt ann/1"]
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED)) == [
        "exited ann: launch 1 ended: interrupted",
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1 redirect:h2",
    ]
    assert stage["ann"].in_flight == ("h1", "h2")
    assert stage.at(4, stage.heard("ann")) == ["heartbeat ann: reflect, redirect (h1, h2) received"]
    assert (stage["ann"].pending_messages, stage["ann"].in_flight, stage["ann"].last_result_seen) == ((), (), 1)
    # Said once.
    assert stage.at(5, stage.heard("ann")) == []
    assert stage.at(66, stage.exited("ann"))[1:] == ["spawn ann/3: turn ended, session of ann, told 1"]


def test_the_timeline_says_for_programs_which_heartbeats_were_received_and_of_which_attempt() -> None:
    stage = Stage(rules=rules_with(REFLECT, REDIRECT))
    stage.tried(2, "ann", -1.0, wait=60)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    stage.at(4, stage.heard("ann"))
    logged = [action for action in stage.actions if isinstance(action, do.LogEvent) and action.messages]
    assert [message for action in logged for message in action.messages] == [
        do.LoggedMessage(name="reflect", id="h1", attempt=1, since=2.0),
        do.LoggedMessage(name="redirect", id="h2", attempt=1, since=2.0),
    ]


def test_several_crossings_of_one_heartbeat_are_one_delivery_that_names_them_all() -> None:
    stage = Stage(rules=rules_with(REFLECT))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, stage.graded(1, 1.0), stage.graded(2, 2.0))[2:] == ["interrupt ann/1"]
    assert stage.resumed("ann", 4)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1 reflect:h2",
        "heartbeat ann: reflect (h1, h2) received",
    ]
    stage = Stage(rules=rules_with(REFLECT))
    assert stage.tried(2, "ann", 1.0)[1:] == ["interrupt ann/1"]
    assert stage.tried(3, "ann", 2.0, wait=60) == ["publish #2 new best 2"]
    assert stage.resumed("ann", 4)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1 reflect:h2",
        "heartbeat ann: reflect (h1, h2) received",
    ]


def test_what_a_launch_did_not_acknowledge_or_was_not_started_with_is_said_again_by_the_next() -> None:
    stage = handed_over()
    # It dies before its first words: with a back-off, for it might do so for ever.
    assert stage.at(3, stage.exited("ann", Ending.CRASHED, "boom")) == [
        "exited ann: launch 2 ended: crashed",
        "crashed ann: launch 2: crashed (boom)",
    ]
    assert stage.owed("ann") == ["reflect h1"]
    assert stage["ann"].in_flight == ()
    (said,) = stage.until(20)
    assert said.endswith("spawn ann/3: crashed (boom), session of ann, told 0, owed reflect:h1")
    stage = handed_over()
    assert stage.at(3, stage.not_started("ann")) == ["crashed ann: launch 2: not started (no such program)"]
    (said,) = stage.until(20)
    assert said.endswith("spawn ann/3: not started (no such program), session of ann, told 0, owed reflect:h1")


def test_nobody_is_interrupted_before_its_first_words_but_these_are_not_waited_for_for_ever() -> None:
    stage = Stage(rules=rules_with(REFLECT), started=False)
    assert stage.tried(2, "ann", 1.0) == ["publish #1 new best 1"]
    assert stage.until(20) == []
    assert stage.at(21, stage.heard("ann")) == ["interrupt ann/1"]
    stage = Stage(rules=rules_with(REFLECT), started=False)
    stage.tried(2, "ann", 1.0)
    assert stage.until(59) == []
    assert stage.until(60) == ["60 interrupt ann/1"]


def test_what_a_silent_launch_was_handed_is_on_its_way_and_no_reason_to_interrupt_it() -> None:
    stage = handed_over()
    assert stage.until(900) == []
    # Something else is.
    assert stage.tried(901, "ann", 2.0) == ["publish #2 new best 2", "interrupt ann/2"]
    # And what was handed over counts as received even while it is being interrupted.
    assert stage.at(902, stage.heard("ann")) == ["heartbeat ann: reflect (h1) received"]
    assert stage.owed("ann") == ["reflect h2"]


def test_words_of_a_launch_that_is_over_acknowledge_nothing() -> None:
    stage = Stage(rules=rules_with(REFLECT))
    stage.tried(2, "ann", 1.0)
    echo = stage.heard("ann")
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED), echo)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    ]
    assert stage.at(4, echo) == []
    assert stage.owed("ann") == ["reflect h1"]
    assert not stage["ann"].has_output
    stage = handed_over()
    assert stage.at(4, stage.heard("ann"), stage.exited("ann"))[0] == "heartbeat ann: reflect (h1) received"
    assert stage["ann"].launch == 2


def test_what_is_owed_never_shortens_a_back_off_or_a_limit() -> None:
    stage = Stage(2, rules_with(REFLECT))
    stage.in_grading(2, "ann", "ben")
    stage.at(3, stage.exited("ann", Ending.LIMIT, until=1000.0), stage.exited("ben", Ending.CRASHED))
    assert stage.at(4, stage.graded(1, 1.0), stage.graded(2, 1.0)) == ["publish #1 new best 1", "publish #2 own best 1"]
    ben, ann = stage.until(1003)
    assert ben.endswith("spawn ben/2: crashed, session of ben, told 0, owed reflect:h2")
    assert 8 < float(ben.split()[0]) < 9.1
    assert ann == "1003 spawn ann/2: at limit, session of ann, told 0, owed reflect:h1"


def test_a_heartbeat_that_is_removed_while_it_is_owed_is_still_delivered() -> None:
    custom = Heartbeat(name="breathe", trigger=Every(1), prompt="in and out")
    stage = Stage(rules=rules_with(custom))
    stage.tried(2, "ann", 1.0)
    stage.at(2, stage.asks("ann", on.RemoveHeartbeat(owner="ann", name="breathe")))
    assert stage.resumed("ann", 3)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed breathe:h1",
        "heartbeat ann: breathe (h1) received",
    ]
    assert stage["ann"].targets == {}


def test_results_are_told_until_the_words_that_follow_them_are_heard() -> None:
    stage = Stage(rules=rules_with(), started=False)
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.heard("ann"))
    assert stage["ann"].last_result_seen == 0
    stage.at(3, stage.exited("ann"))
    stage.tried(4, "ann", 2.0)
    # The launch was handed the first result; the second came later.
    assert (stage["ann"].last_result_seen, stage["ann"].last_result_sent) == (0, 1)
    assert stage.at(5, stage.heard("ann")) == []
    assert stage["ann"].last_result_seen == 1
    assert stage.at(66, stage.exited("ann"))[1:] == ["spawn ann/3: turn ended, session of ann, told 1"]
    # It dies unheard: what it was told has reached nobody.
    stage.at(6, stage.exited("ann", Ending.CRASHED))
    assert stage.until(20)[0].endswith("session of ann, told 1")


# --- what waits for a good moment ---------------------------------------------------------------------------------


def message(stage: Stage, clock: float) -> None:
    stage.at(clock, stage.asks("operator", on.Tell(to="ann", text="try hexagons")))


def test_a_message_waits_at_most_so_long_and_goes_along_at_the_end_of_a_turn() -> None:
    stage = Stage(rules=rules_with())
    message(stage, 2)
    (owed,) = stage["ann"].pending_messages
    assert (owed.id, owed.name, owed.prompt, owed.since, owed.due) == ("h1", "message", "try hexagons", 2, 602)
    assert (owed.attempt, owed.defers, owed.inline, owed.stagnant) == (None, True, False, False)
    assert stage.until(601) == []
    assert stage.until(602) == ["602 interrupt ann/1"]
    assert stage.resumed("ann", 603)[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed message:h1",
        "heartbeat ann: message (h1) received",
    ]
    assert stage["ann"].awaiting_reply == ()
    stage = Stage(rules=rules_with())
    message(stage, 2)
    assert stage.at(70, stage.exited("ann"))[1:] == ["spawn ann/2: turn ended, session of ann, told 0, owed message:h1"]


def test_a_tool_that_goes_on_is_never_cut() -> None:
    stage = Stage(rules=rules_with())
    message(stage, 2)
    assert stage.until(590) == []
    for clock in range(590, 900, 50):
        assert stage.at(clock, stage.heard("ann", busy="tool")) == []
    # The last sign of it came at 890; a minute later it is not believed any more.
    assert stage.until(949.9) == []
    assert stage.until(950) == ["950 interrupt ann/1"]


def test_the_end_of_a_tool_is_a_good_moment_once_the_time_has_come_and_a_heartbeat_of_an_attempt_cuts_it() -> None:
    stage = Stage(rules=rules_with())
    message(stage, 2)
    stage.until(590)
    stage.at(590, stage.heard("ann", busy="tool"))
    stage.until(602)
    assert stage.at(610, stage.heard("ann", busy="thinking")) == ["interrupt ann/1"]
    stage = Stage(rules=rules_with(REFLECT))
    stage.at(2, stage.heard("ann", busy="tool"))
    assert stage.tried(3, "ann", 1.0) == ["publish #1 new best 1", "interrupt ann/1"]


def test_deadlines_that_are_no_round_numbers_are_met_exactly() -> None:
    # 4.1 + 60.0 - 4.1 is less than 60.0: by subtraction the moment never came.
    stage = Stage(rules=replace(rules_with(), max_defer=10.0))
    message(stage, 2)
    heard_at = 4.1
    stage.at(heard_at, stage.heard("ann", busy="tool"))
    assert (heard_at + 60.0) - heard_at < 60.0
    assert stage.until(65) == ["64.1 interrupt ann/1"]


# --- at the end of `coral eval` ---------------------------------------------------------------------------------------


def test_everything_owed_goes_along_at_the_end_of_an_eval() -> None:
    stage = Stage(rules=replace(rules_with(REFLECT, CHECKPOINT), stall=9e9))
    assert stage.until(1800) == []
    stage.at(1801, stage.asks("operator", on.Tell(to="ann", text="be quick")))
    assert stage.owed("ann") == ["checkpoint h1", "message h2"]
    assert stage.tried(1802, "ann", 1.0, wait=60) == [
        "publish #1 new best 1, then checkpoint message reflect",
        "interrupt ann/1",
    ]
    assert {message.due for message in stage["ann"].pending_messages} == {1802}


@pytest.mark.parametrize("busy", ["tool", "thinking"])
def test_the_end_of_an_eval_is_a_good_moment_though_the_eval_is_a_tool(busy: str) -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(1800)
    stage.at(1801, stage.heard("ann", busy=busy))
    assert stage.tried(1802, "ann", 1.0, wait=60) == ["publish #1 new best 1, then checkpoint", "interrupt ann/1"]


def test_who_does_not_wait_at_the_eval_or_did_in_the_past_is_not_told_there() -> None:
    stage = Stage(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(1800)
    assert stage.tried(1802, "ann", 1.0) == ["publish #1 new best 1"]
    (number,) = stage.in_grading(1803, "ann", wait=10)
    assert stage.at(1813, stage.graded(number, 2.0)) == ["publish #2 new best 2"]
    (number,) = stage.in_grading(1814, "ann", wait=10)
    assert stage.at(1823.9, stage.graded(number, 3.0)) == ["publish #3 new best 3, then checkpoint", "interrupt ann/1"]
    stage = Stage(rules=rules_with(TIP))
    assert stage.tried(2, "ann", 1.0, wait=-5) == ["publish #1 new best 1", "interrupt ann/1"]
    assert stage["ann"].pending_messages[0].printed is False
    assert Stage(rules=rules_with(TIP)).tried(2, "ann", 1.0) == ["publish #1 new best 1", "interrupt ann/1"]


def test_whoever_waited_in_an_eval_is_gone_with_its_launch() -> None:
    # The next launch was told that its `coral eval` prints something; it was running none.
    stage = Stage(rules=rules_with(TIP))
    stage.in_grading(2, "ann", wait=600)
    stage.at(3, stage.exited("ann"))
    stage.at(3, stage.heard("ann"))
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 new best 1", "interrupt ann/2"]


def test_output_before_the_conversation_has_the_prompt_acknowledges_nothing() -> None:
    """Nor is the launch interrupted meanwhile, or it would get its messages twice; not before its start is overdue."""
    rules, tell = replace(rules_with(REFLECT), max_defer=0.0), on.Tell(to="ann", text="hello")

    def begun() -> Stage:
        stage = Stage(rules=rules)
        stage.tried(2, "ann", 1.0)
        stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
        assert stage.at(4, stage.heard("ann", busy="thinking", has_prompt=False)) == []
        stage.at(5, stage.asks("operator", tell))
        return stage

    stage = begun()
    agent = stage["ann"]
    assert (agent.has_output, agent.activity, agent.in_flight, agent.last_result_seen) == (True, "thinking", ("h1",), 0)
    later = stage.at(6, stage.heard("ann", busy="thinking"))
    assert later == ["heartbeat ann: reflect (h1) received", "interrupt ann/2"]
    assert stage["ann"].last_result_seen == 1
    assert begun().until(100)[0] == f"{3 + rules.start_grace:g} interrupt ann/2"


def test_a_turn_that_ended_well_had_its_prompt_though_its_program_printed_nothing() -> None:
    stage = handed_over()
    assert stage.at(4, stage.exited("ann"))[:2] == [
        "exited ann: launch 2 ended: clean",
        "heartbeat ann: reflect (h1) received",
    ]
    assert (stage["ann"].pending_messages, stage["ann"].last_result_seen) == ((), 1)
    stage = handed_over()
    stage.at(4, stage.exited("ann", Ending.CRASHED))
    assert ([message.id for message in stage["ann"].pending_messages], stage["ann"].last_result_seen) == (["h1"], 0)
    stage = handed_over()
    stage.ask("operator", on.Pause(agent="ann"), 4)
    stage.at(5, stage.exited("ann"))
    assert [message.id for message in stage["ann"].pending_messages] == ["h1"]


def test_what_a_launch_was_handed_is_not_told_at_its_eval_too() -> None:
    stage = Stage(rules=rules_with(REFLECT, REDIRECT))
    stage.tried(2, "ann", -1.0)
    stage.at(3, stage.exited("ann", Ending.INTERRUPTED))
    assert stage["ann"].in_flight == ("h1", "h2")
    assert stage.tried(4, "ann", 1.0, wait=60) == ["publish #2 new best 1, then reflect"]
    # Its first words were not heard yet; as soon as they are, it is interrupted.
    assert stage.at(5, stage.heard("ann")) == ["heartbeat ann: reflect, redirect (h1, h2) received", "interrupt ann/2"]


# --- inline -----------------------------------------------------------------------------------------------------------


def test_an_inline_heartbeat_is_printed_once_and_acknowledged_by_the_eval_or_goes_along_with_an_interrupt() -> None:
    stage = Stage(rules=rules_with(TIP))
    assert stage.tried(2, "ann", 1.0, wait=60) == ["publish #1 new best 1, printing tip:h1"]
    assert stage.at(3, stage.asks("ann", on.Acknowledge(messages=("h1",)))) == [
        "heartbeat ann: tip (h1) received",
        "answer ann/1: yes, acknowledged",
    ]
    assert stage["ann"].pending_messages == ()
    assert stage.until(100) == []
    stage = Stage(rules=rules_with(TIP, REFLECT))
    assert stage.tried(2, "ann", 1.0, wait=60) == ["publish #1 new best 1, then tip reflect", "interrupt ann/1"]


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
        "publish #1 new best 1, printing tip:h1",
        "publish #2 new best 2, printing tip:h2",
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
    assert stage.tried(32, "ann", 2.0, wait=60) == ["publish #2 new best 2, then tip"]


def test_an_inline_heartbeat_of_the_clock_is_printed_at_the_next_eval() -> None:
    stage = Stage(rules=replace(rules_with(replace(CHECKPOINT, delivery=Delivery.INLINE)), stall=9e9))
    assert stage.until(1800) == []
    assert stage.tried(1900, "ann", 1.0, wait=60) == ["publish #1 new best 1, printing checkpoint:h1"]
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


# --- repeated in short ------------------------------------------------------------------------------------------------


def next_launch(stage: Stage, ending: Ending, *, began: bool) -> list[int]:
    """The launch ends without having acknowledged anything; of the messages of the next one, which launch had them."""
    stage.at(stage.clock, replace(stage.exited("ann", ending), began=began))
    stage.at(stage.deadline("ann"))
    (spawn,) = [action for action in stage.actions if isinstance(action, do.Spawn)]
    return [message.handed_at for message in spawn.messages]


def test_a_message_is_whole_until_a_launch_that_began_has_left_it_without_an_answer() -> None:
    stage = handed_over()
    assert next_launch(stage, Ending.CRASHED, began=False) == [0]  # nobody has the text
    assert next_launch(stage, Ending.CRASHED, began=True) == [3]
    assert next_launch(stage, Ending.CRASHED, began=True) == [3]
    assert next_launch(stage, Ending.CRASHED, began=False) == [3]
    stage.at(stage.clock, stage.heard("ann"))
    assert stage.owed("ann") == []


def test_a_launch_of_which_nothing_is_known_has_given_nobody_the_text() -> None:
    stage = handed_over()
    stage.at(4, stage.exited("ann", Ending.CRASHED))
    assert [message.handed_at for message in stage["ann"].pending_messages] == [0]
    stage.at(stage.deadline("ann"))
    stage.at(stage.clock, stage.not_started("ann"))
    assert [message.handed_at for message in stage["ann"].pending_messages] == [0]


def test_what_came_later_is_whole() -> None:
    stage = handed_over()
    stage.at(4, stage.asks("operator", on.Tell(to="ann", text="look up")))
    assert next_launch(stage, Ending.CRASHED, began=True) == [2, 0]


def test_a_new_conversation_has_no_text_of_any_message() -> None:
    stage = handed_over()
    assert next_launch(stage, Ending.CRASHED, began=True) == [2]
    assert next_launch(stage, Ending.UNKNOWN_SESSION, began=True) == [0]
    assert stage["ann"].session is None
