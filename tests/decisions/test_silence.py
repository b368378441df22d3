"""Silent and deaf agents, and what programs leave behind, as transcripts: ended in order, and delaying nobody."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECTING, Stage, brief

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.agents.back_off import back_off
from coral.fleet.agents.stalls import silences, silent_for, ttl_now
from coral.fleet.events import Ending

SHORT = replace(QUIET_RULES, stall=100.0)


# --- silence ----------------------------------------------------------------------------------------------------------


def test_who_stays_silent_is_interrupted_and_told_so_and_from_its_start_backs_off() -> None:
    stage = Stage(rules=SHORT)
    stage.at(50, stage.heard("ann"))
    assert stage.until(150) == ["150 stalled ann: stalled (silent, 1, 100)", "150 interrupt ann/1"]
    assert stage.at(151, stage.exited("ann", Ending.INTERRUPTED))[1:] == [
        "spawn ann/2: stalled (silent, 1, 100), session of ann, told 0, owed stalled:h1"
    ]
    assert (stage["ann"].has_output, stage["ann"].last_output_at, stage["ann"].spawned_at) == (False, 151, 151)
    stage = Stage(rules=SHORT, started=False)
    assert stage.until(100) == ["100 stalled ann: stalled (silent, 1, 100)", "100 interrupt ann/1"]
    assert stage.at(101, stage.exited("ann", Ending.CLEAN)) == ["exited ann: launch 1 ended: clean"]
    assert stage["ann"].crashes == 1
    assert stage["ann"].deadline == 101 + back_off("run", stage["ann"], 1, stage.rules)
    (said,) = stage.until(110)
    assert said.endswith("spawn ann/2: stalled (silent, 1, 100), told 0, owed stalled:h1")
    # It is no crash that the fleet's breaker counts.
    assert stage.breaker.crashes == ()


def test_who_waits_for_a_grade_is_not_silent_until_the_last_has_come_or_the_waiting_is_over() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=500)
    assert stage.until(601) == []
    assert stage["ann"].deadline == 602
    # That much later its `coral eval` has given up waiting and must have been printed.
    assert stage.until(602) == ["602 stalled ann: stalled (silent, 1, 601)", "602 interrupt ann/1"]
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=10)
    assert stage.until(111) == []
    assert stage.until(112) == ["112 stalled ann: stalled (silent, 1, 111)", "112 interrupt ann/1"]
    # An agent whose grade came a second before the limit was interrupted a second after it.
    stage = Stage(rules=SHORT)
    (number,) = stage.in_grading(2, "ann", wait=500)
    assert stage.at(100, stage.graded(number, 1.0)) == ["publish #1 new best 1"]
    assert stage.until(199) == []
    assert stage.until(200) == ["200 stalled ann: stalled (silent, 1, 199)", "200 interrupt ann/1"]
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=500)
    stage.in_grading(3, "ann", wait=10)
    assert stage.until(601) == []
    stage.until(602)
    assert stage["ann"].phase is Phase.INTERRUPTED


def test_who_does_not_wait_for_its_grade_may_be_silent() -> None:
    stage = Stage(2, SHORT)
    stage.at(50, stage.heard("ann"))
    stage.in_grading(60, "ann")
    stage.in_grading(60, "ben", wait=500)
    stage.at(70, stage.graded(1, 1.0))
    # Its submission was progress, from which on its silence counts.
    assert stage.until(160) == ["160 stalled ann: stalled (silent, 1, 110)", "160 interrupt ann/1"]


# --- deaf -------------------------------------------------------------------------------------------------------------


def test_an_agent_deaf_to_everything_is_named_retired_and_delays_nobody() -> None:
    stage = Stage(2, REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.until(12) == ["12 terminate ann/1"]
    # Another one's heartbeat is as quick as ever.
    assert stage.tried(13, "ben", 1.0) == ["publish #2 own best 1", "interrupt ben/1"]
    assert stage.resumed("ben", 13)[1:] == [
        "spawn ben/2: heartbeat, session of ben, told 0, owed reflect:h2",
        "heartbeat ben: reflect (h2) received",
    ]
    assert stage.until(100) == [
        "17 kill ann/1",
        "19 kill ann/1",
        "23 kill ann/1",
        "31 kill ann/1",
        "47 kill ann/1",
        "79 alert run-alert-1 of ann: ann has retired: unkillable",
    ]
    agent = stage["ann"]
    assert (agent.phase, brief(agent.reason), agent.deadline) == (Phase.RETIRED, "unkillable", None)
    assert stage.owed("ann") == ["reflect h1"]
    # What it prints now is not heard; while its process lives there is no other.
    assert stage.at(101, stage.heard("ann", busy="tool"), stage.lingered("ann")) == []
    assert stage["ann"].activity == ""


def test_an_agent_whose_process_ends_after_it_was_given_up_comes_back() -> None:
    stage = Stage(rules=REFLECTING)
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 1.0))
    stage.in_grading(3, "ann")
    assert stage.until(80)[-1] == "80 alert run-alert-1 of ann: ann has retired: unkillable"
    assert stage.at(82, stage.exited("ann", Ending.CRASHED)) == [
        "exited ann: launch 1 ended: crashed",
        "spawn ann/2: killed, session of ann, told 0, owed reflect:h1",
    ]
    assert stage["ann"].kills == 0


@pytest.mark.parametrize(("detail", "why"), [("no key", "given up (no key)"), ("", "given up")])
def test_a_terminal_end_retires_for_good_with_its_reason(detail: str, why: str) -> None:
    stage = Stage(2)
    assert stage.at(2, stage.exited("ann", Ending.TERMINAL, detail)) == [
        "exited ann: launch 1 ended: terminal",
        f"alert run-alert-1 of ann: ann has retired: {why}",
    ]
    assert stage.at(3, stage.exited("ann"), on.SpawnFailed(who="ann", launch=1, reason="?")) == []
    assert (stage["ann"].phase, brief(stage["ann"].reason), stage["ann"].deadline) == (Phase.RETIRED, why, None)


def test_who_obeys_the_second_signal_goes_on_with_what_it_was_interrupted_for() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.until(13) == ["12 terminate ann/1"]
    assert stage.at(14, stage.exited("ann", Ending.CRASHED))[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    ]
    stage = Stage(rules=replace(REFLECTING, interrupt_grace=0.0, terminate_grace=0.0))
    assert stage.tried(2, "ann", 1.0)[1:] == ["interrupt ann/1", "terminate ann/1", "kill ann/1"]


def test_kills_of_one_launch_are_not_held_against_the_next() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    stage.until(20)
    assert (stage["ann"].kills, stage["ann"].phase) == (2, Phase.KILLED)
    stage.at(20, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].kills == 0
    stage.at(21, stage.heard("ann"))
    stage.tried(22, "ann", 2.0)
    assert stage.until(100)[-2:] == [
        "99 alert run-alert-1 of ann: ann has retired: unkillable",
        "99 finish: all retired",
    ]


# --- what a program leaves behind -------------------------------------------------------------------------------------


def test_what_an_ended_program_leaves_behind_is_ended_before_the_next_starts() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.lingered("ann"), stage.lingered("ann")) == ["terminate ann/1"]
    assert stage["ann"].phase is Phase.TERMINATED
    assert stage.until(8) == ["8 kill ann/1"]
    # Its turn ended as it did; that we cleaned up behind it makes it no other.
    assert stage.at(9, stage.exited("ann"))[1:] == ["spawn ann/2: turn ended, session of ann, told 0"]


def test_a_program_that_leaves_something_behind_goes_on_for_its_own_reason_and_its_crash_is_one() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.at(3, stage.lingered("ann")) == ["terminate ann/1"]
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED))[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    ]
    stage = Stage()
    stage.at(2, stage.lingered("ann"))
    assert stage.at(3, stage.exited("ann", Ending.CRASHED, "boom"))[1:] == ["crashed ann: launch 1: crashed (boom)"]


# --- silent, but computing --------------------------------------------------------------------------------------------


def test_who_computes_in_silence_is_not_silent_until_that_is_over_too() -> None:
    stage = Stage(rules=SHORT)
    assert stage.at(90, on.LifeSeen(agent="ann", launch=1)) == []
    assert stage.at(150, on.LifeSeen(agent="ann", launch=1)) == []
    assert stage.until(249) == []
    assert stage.until(250) == ["250 stalled ann: stalled (silent, 1, 249)", "250 interrupt ann/1"]
    # That it computes on changes nothing any more.
    stage.at(251, on.LifeSeen(agent="ann", launch=1))
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.INTERRUPTED, 260)


@pytest.mark.parametrize("event", [on.LifeSeen(agent="nobody", launch=1), on.LifeSeen(agent="ann", launch=2)])
def test_cpu_of_nobody_or_of_another_launch_says_nothing(event: on.LifeSeen) -> None:
    stage = Stage(rules=SHORT)
    assert stage.at(90, event) == []
    assert stage.until(101)[-1] == "101 interrupt ann/1"


def test_a_program_that_has_never_said_a_word_is_silent_however_much_it_computes() -> None:
    stage = Stage(rules=SHORT, started=False)
    stage.at(90, on.LifeSeen(agent="ann", launch=1))
    assert stage.until(100)[-1] == "100 interrupt ann/1"


def test_cpu_use_shortens_no_patience() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=500)
    stage.until(150)
    assert stage["ann"].deadline == 602
    stage.at(151, on.LifeSeen(agent="ann", launch=1))
    assert stage["ann"].deadline == 602


def test_a_launch_at_work_is_measured_from_half_of_its_ttl_on() -> None:
    stage = Stage(2, rules=SHORT, started=False)
    stage.until(1)
    stage.at(1, stage.heard("ann"))
    assert silences(stage.fleet, stage.rules) == {("ann", 1): (101, 100)}  # nothing was heard of ben
    stage.at(41, stage.heard("ben"), on.LifeSeen(agent="ann", launch=1))
    assert silences(stage.fleet, stage.rules) == {("ann", 1): (141, 100), ("ben", 1): (141, 100)}
    stage.at(60, stage.exited("ben"))
    stage.until(141)
    assert (stage["ann"].phase, silences(stage.fleet, stage.rules)) == (Phase.INTERRUPTED, {})


# --- the ttl of a phase -----------------------------------------------------------------------------------------------

PHASES = replace(SHORT, ttl={"starting": 40.0, "tool": 300.0, "thinking": 60.0})


@pytest.mark.parametrize(("busy", "ttl"), [("tool", 300), ("thinking", 60), ("retrying", 100), ("", 100)])
def test_a_launch_may_be_silent_for_as_long_as_its_phase_allows(busy: str, ttl: float) -> None:
    stage = Stage(rules=PHASES)
    stage.at(10, stage.heard("ann", busy=busy))
    assert silences(stage.fleet, stage.rules) == {("ann", 1): (10 + ttl, ttl)}
    # A sign of life, and a supervisor that takes it over, begin the same time again.
    stage.at(20, on.LifeSeen(agent="ann", launch=1))
    assert stage.deadline("ann") == 20 + ttl
    stage.at(30, on.Resumed())
    assert (stage.deadline("ann"), stage.until(30 + ttl - 1)) == (30 + ttl, [])
    assert stage.until(30 + ttl)[-1] == f"{30 + ttl:g} interrupt ann/1"


def test_of_the_phase_that_it_ended_in_the_next_launch_knows_nothing() -> None:
    stage = Stage(rules=PHASES, started=False)
    assert stage.until(40)[-1] == "40 interrupt ann/1"
    stage = Stage(rules=PHASES)
    stage.at(10, stage.heard("ann", busy="tool"))
    stage.at(20, on.Requested(sender="operator", id="1", request=on.Restart(agent="ann", fresh=False)))
    stage.at(21, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.deadline("ann") == 61
    assert stage.until(61)[-1] == "61 interrupt ann/2"


def test_after_a_step_for_work_without_progress_the_ttl_of_the_phase_begins() -> None:
    stage = Stage(rules=replace(PHASES, no_progress=80.0))
    stage.at(2, stage.heard("ann", busy="thinking"))
    stage.at(60, on.LifeSeen(agent="ann", launch=1))
    assert stage.until(80) == ["80 look ann/1"]
    stage.at(90, stage.looked("ann"))
    assert stage["ann"].stall.escalations == 1
    assert stage.until(149) == []
    assert stage.until(150)[-1] == "150 interrupt ann/1"


def test_after_a_wait_for_a_grade_the_ttl_of_the_phase_begins() -> None:
    stage = Stage(rules=replace(PHASES, grade_timeout=9e9))
    stage.at(2, stage.heard("ann", busy="thinking"))
    stage.in_grading(2, "ann", wait=500)
    assert stage.until(561) == []
    assert stage.until(562)[-1] == "562 interrupt ann/1"
    stage = Stage(rules=PHASES)
    stage.at(2, stage.heard("ann", busy="thinking"))
    stage.at(3, stage.asks("ann", on.RunJob(agent="ann", argv=("train",))))
    stage.until(200)
    assert stage.deadline("ann") == 242  # its job is what it waits for: looked at every ttl


def silent(stage: Stage) -> float:
    return silent_for(stage.fleet, stage["ann"], stage.clock, stage.rules)


def test_how_long_a_launch_has_been_silent_leaves_out_what_it_waited_for() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.at(2, stage.heard("ann"))
    assert silent(stage) == 0
    stage.until(52)
    assert silent(stage) == 50
    (number,) = stage.in_grading(52, "ann", wait=500)
    assert (silent(stage), ttl_now(stage.fleet, "ann", "", 52, stage.rules)) == (0, 600)
    stage.until(152)
    assert (silent(stage), ttl_now(stage.fleet, "ann", "", 152, stage.rules)) == (0, 500)
    # It has its grade: from then on it is expected to say something.
    stage.at(160, stage.graded(number, 1.0))
    assert stage.deadline("ann") == 260
    stage.until(170)
    assert (silent(stage), ttl_now(stage.fleet, "ann", "", 170, stage.rules)) == (10, 100)
    stage.at(170, on.DiskChecked(problem="full"))
    stage.clock = 180
    assert silent(stage) == 0
    # Whoever waits no longer for its grade is silent from the end of its waiting on.
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=30)
    stage.until(40)
    assert (silent(stage), ttl_now(stage.fleet, "ann", "", 40, stage.rules)) == (8, 100)
