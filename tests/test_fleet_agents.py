"""An agent's phases, as transcripts: it waits, runs, is interrupted, terminated, killed, parked, or has retired."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, attempt_zero

from coral.fleet import events as on
from coral.fleet.events import Ending
from coral.fleet.policy import back_off
from coral.fleet.state import Agent, Phase
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Every

REFLECTING = replace(QUIET_RULES, heartbeats=(Heartbeat(name="reflect", trigger=Every(1), protected=True),))
SHORT = replace(QUIET_RULES, stall=100.0)


def test_a_run_opens_with_its_seed_published_and_its_agents_started_one_after_another() -> None:
    stage = Stage(3, REFLECTING, started=False)
    assert stage.opening == [
        "publish #0 improved 0",
        "show fleet",
        "show ann",
        "show ben",
        "show cid",
        "spawn ann/1: start, told 0",
    ]
    assert stage.until(10) == ["0.05 spawn ben/1: start, told 0", "0.1 spawn cid/1: start, told 0"]
    assert stage["ann"] == Agent(
        name="ann",
        phase=Phase.RUNNING,
        deadline=1200.0,
        why="start",
        launch=1,
        targets={"reflect": 1},
        progress=stage.fleet.run.progress,
    )
    assert stage.fleet.run.id == "run"


def test_nothing_happens_before_a_run_is_opened() -> None:
    stage = Stage(started=False)
    stage.fleet = type(stage.fleet)()
    assert stage.at(0, on.Resumed(), on.Broken(item="a file", reason="it is a folder")) == [
        "alert -alert-1: a file was set aside: it is a folder"
    ]
    assert stage.fleet.run.stopping == ""


def test_first_words_bring_the_session_which_later_ones_may_leave_out_or_change() -> None:
    stage = Stage(started=False)
    stage.at(3, stage.heard("ann", busy="tool"))
    agent = stage["ann"]
    assert (agent.session, agent.heard, agent.heard_at, agent.busy, agent.deadline) == (
        "session of ann",
        True,
        3,
        "tool",
        1203,
    )
    stage.at(4, stage.heard("ann", session=None))
    assert (stage["ann"].session, stage["ann"].busy, stage["ann"].deadline) == ("session of ann", "", 1204)
    stage.at(5, stage.heard("ann", session="another"))
    assert stage["ann"].session == "another"


def test_words_of_nobody_and_ends_of_nobody_are_dropped() -> None:
    stage = Stage()
    before = stage.fleet
    strangers = (
        on.Heard(agent="eve", launch=1),
        on.Exited(agent="eve", launch=1, ending=Ending.CLEAN),
        on.Exited(agent="ann", launch=2, ending=Ending.CLEAN),
        on.Exited(agent="ann", launch=0, ending=Ending.CLEAN),
        on.Lingered(who="eve", launch=1),
        on.Lingered(who="ann", launch=2),
        on.SpawnFailed(who="eve", launch=1, reason="?"),
        on.SpawnFailed(who="ann", launch=2, reason="?"),
        on.Heard(agent="ann", launch=2, session="?"),
    )
    assert stage.at(2, *strangers) == []
    assert stage.fleet == before


def test_an_end_is_heard_once() -> None:
    stage = Stage()
    end = stage.exited("ann", Ending.CRASHED, "boom")
    assert stage.at(2, end, end) == ["exited ann: launch 1 ended: crashed", "crashed ann: launch 1: boom"]
    assert stage.at(3, end, on.SpawnFailed(who="ann", launch=1, reason="?"), stage.lingered("ann")) == []
    assert stage["ann"].crashes == 1


# --- turns --------------------------------------------------------------------------------------------------------


def test_a_turn_with_a_try_goes_on_at_once() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.exited("ann")) == [
        "exited ann: launch 1 ended: clean",
        "spawn ann/2: turn ended, session of ann, told 0",
    ]
    # What the last launch tried is no try of this one.
    assert len(stage.at(4, stage.exited("ann"))) == 1


def test_a_long_turn_goes_on_at_once_though_nothing_was_tried() -> None:
    stage = Stage()
    assert len(stage.at(59.9, stage.exited("ann"))) == 1
    stage = Stage()
    assert len(stage.at(60, stage.exited("ann"))) == 2


def test_short_turns_without_a_try_back_off_doubling() -> None:
    stage = Stage(rules=replace(QUIET_RULES, backoff_max=30.0))
    pauses = []
    for _ in range(5):
        ended = stage.clock
        stage.at(ended, stage.exited("ann"))
        (said,) = stage.until(ended + 60)
        pauses.append(stage["ann"].spawned_at - ended)
        assert "turn ended" in said
        stage.clock = stage["ann"].spawned_at
    assert all(least < each <= 1.2 * least for each, least in zip(pauses, [5, 10, 20, 30, 30], strict=True)), pauses
    assert stage["ann"].idle == 5
    # A try that is graded ends the row.
    stage.tried(stage.clock, "ann", 1.0)
    assert stage["ann"].idle == 0


def test_a_try_that_is_graded_ends_a_row_of_crashes() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].crashes == 1
    stage.at(4, stage.graded(1, 1.0))
    assert stage["ann"].crashes == 0


def test_a_good_turn_ends_the_row_of_failures() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(20)
    stage.at(20, stage.exited("ann"))
    stage.until(40)
    assert (stage["ann"].crashes, stage["ann"].idle) == (1, 1)
    stage.at(stage["ann"].spawned_at + 60, stage.exited("ann"))
    assert (stage["ann"].crashes, stage["ann"].idle, stage["ann"].launch) == (0, 0, 4)


# --- crashes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "detail", "reason"),
    [
        (Ending.CRASHED, "out of memory", "out of memory"),
        (Ending.CRASHED, "", "it crashed"),
        (Ending.INTERRUPTED, "", "it interrupted"),
        (Ending.UNKNOWN_SESSION, "", "its program does not know the session"),
        (Ending.UNKNOWN_SESSION, "no conversation found", "no conversation found"),
    ],
)
def test_a_crash_is_told_and_followed_by_a_back_off(ending: Ending, detail: str, reason: str) -> None:
    stage = Stage()
    assert stage.at(2, stage.exited("ann", ending, detail)) == [
        f"exited ann: launch 1 ended: {ending}",
        f"crashed ann: launch 1: {reason}",
    ]
    session = "" if ending is Ending.UNKNOWN_SESSION else ", session of ann"
    (said,) = stage.until(9)
    assert said.endswith(f" spawn ann/2: crashed{session}, told 0")
    assert 7 < stage["ann"].spawned_at < 8


def test_crashes_in_a_row_back_off_doubling() -> None:
    stage = Stage(rules=replace(QUIET_RULES, breaker_crashes=99))
    for crashes, least in ((1, 5), (2, 10), (3, 20), (4, 40)):
        ended = stage.clock
        stage.at(ended, stage.exited("ann", Ending.CRASHED))
        assert stage["ann"].crashes == crashes
        assert stage["ann"].deadline == ended + back_off("run", stage["ann"], crashes, stage.rules)
        assert ended + least < stage["ann"].deadline <= ended + 1.2 * least
        stage.until(stage["ann"].deadline)


def test_a_program_that_cannot_be_started_is_a_crash() -> None:
    stage = Stage(started=False)
    assert stage.at(0, stage.not_started("ann", "permission denied")) == [
        "crashed ann: launch 1: its program could not be started: permission denied"
    ]
    assert stage["ann"].crashes == 1
    assert len(stage.fleet.run.crashes) == 1


def test_many_crashes_in_a_short_time_hold_the_whole_fleet() -> None:
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=3))
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.at(3, stage.exited("ben", Ending.CRASHED))
    assert stage.at(4, stage.exited("cid", Ending.CRASHED, "no key"))[2:] == [
        "alert run-alert-1: 3 crashes within 60 seconds; nothing starts for 300 seconds. The last one: no key"
    ]
    # What runs goes on; what ends now waits with the others; one alert is enough.
    stage.in_grading(4, "dot")
    assert stage.at(5, stage.exited("dot")) == ["exited dot: launch 1 ended: clean"]
    assert (stage["dot"].deadline, stage.pending(1).waited_until) == (5, 0)
    stage.at(5, stage.graded(1, 1.0))
    assert stage.until(303.9) == []
    assert [line.split(":")[0] for line in stage.until(304)] == [
        "304 spawn ann/2",
        "304 spawn ben/2",
        "304 spawn cid/2",
        "304 spawn dot/2",
    ]


def test_the_breaker_counts_within_its_window_only() -> None:
    rules = replace(QUIET_RULES, breaker_crashes=3, backoff=1.0, backoff_max=1.0)
    stage = Stage(3, rules)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(30)
    stage.at(30, stage.exited("ben", Ending.CRASHED))
    stage.until(62)
    # The crash at 2 was sixty seconds ago.
    assert len(stage.at(62, stage.exited("cid", Ending.CRASHED))) == 2
    assert stage.fleet.run.crashes == (30, 62)
    stage.until(89)
    assert "alert" in stage.at(89, stage.exited("ann", Ending.CRASHED))[2]


def test_crashes_while_the_fleet_is_held_count_for_what_comes_after() -> None:
    rules = replace(QUIET_RULES, breaker_crashes=2, breaker_pause=10.0)
    stage = Stage(4, rules)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    assert len(stage.at(2, stage.exited("ben", Ending.CRASHED))) == 3
    assert stage.fleet.run.crashes == ()
    stage.at(9, stage.exited("cid", Ending.CRASHED))
    assert stage.fleet.run.held_until == 12
    # At twelve the hold is over, and this is the second crash within a minute.
    assert "alert" in stage.at(12, stage.exited("dot", Ending.CRASHED))[2]
    assert stage.fleet.run.held_until == 22


# --- limits -------------------------------------------------------------------------------------------------------


def test_a_limit_parks_an_agent_until_the_time_the_provider_named() -> None:
    stage = Stage(2)
    assert stage.at(2, stage.exited("ann", Ending.LIMIT, until=3600.0)) == [
        "exited ann: launch 1 ended: limit",
        "alert run-alert-1 of ann: ann has reached a usage limit and is parked",
    ]
    assert stage["ann"].phase is Phase.PARKED
    assert stage.until(3602)[-1] == "3602 spawn ann/2: usage limit, session of ann, told 0"


def test_a_limit_without_a_time_parks_for_the_longest_back_off() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    assert stage["ann"].deadline == 602


@pytest.mark.parametrize("until", [0.0, 3.0])
def test_a_limit_that_is_over_already_is_not_asked_again_at_once(until: float) -> None:
    # A program that named a time in the past was started again and again without a pause.
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=until))
    assert stage["ann"].deadline == 2 + back_off("run", stage["ann"], 1, stage.rules)


def test_a_parked_agent_waits_for_the_breaker_too() -> None:
    stage = Stage(2, replace(QUIET_RULES, breaker_crashes=1))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0), stage.exited("ben", Ending.CRASHED))
    assert [line.split(":")[0] for line in stage.until(400)] == ["302 spawn ann/2", "302 spawn ben/2"]


# --- silence ------------------------------------------------------------------------------------------------------


def test_an_agent_that_stays_silent_is_interrupted_and_told_so() -> None:
    stage = Stage(rules=SHORT)
    stage.at(50, stage.heard("ann"))
    assert stage.until(150) == ["150 stalled ann: silent for 100 seconds", "150 interrupt ann/1"]
    assert stage.at(151, stage.exited("ann", Ending.INTERRUPTED))[1:] == [
        "spawn ann/2: stalled, session of ann, told 0"
    ]
    assert (stage["ann"].heard, stage["ann"].heard_at, stage["ann"].spawned_at) == (False, 151, 151)


def test_a_start_that_stays_silent_backs_off() -> None:
    stage = Stage(rules=SHORT, started=False)
    assert stage.until(100) == ["100 stalled ann: silent for 100 seconds", "100 interrupt ann/1"]
    assert stage.at(101, stage.exited("ann", Ending.CLEAN)) == ["exited ann: launch 1 ended: clean"]
    assert stage["ann"].crashes == 1
    assert stage["ann"].deadline == 101 + back_off("run", stage["ann"], 1, stage.rules)
    (said,) = stage.until(110)
    assert said.endswith("spawn ann/2: stalled, told 0")
    # It is no crash that the fleet's breaker counts.
    assert stage.fleet.run.crashes == ()


def test_who_waits_for_a_grade_is_not_silent() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=500)
    assert stage.until(601) == []
    assert stage["ann"].deadline == 602
    # That much later its `coral eval` has given up waiting and must have been printed.
    assert stage.until(602) == ["602 stalled ann: silent for 601 seconds", "602 interrupt ann/1"]


def test_silence_begins_when_the_waiting_is_over() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=10)
    assert stage.until(111) == []
    assert stage.until(112) == ["112 stalled ann: silent for 111 seconds", "112 interrupt ann/1"]


def test_silence_begins_when_the_grade_has_come() -> None:
    # An agent whose grade came a second before the limit was interrupted a second after it.
    stage = Stage(rules=SHORT)
    (number,) = stage.in_grading(2, "ann", wait=500)
    assert stage.at(100, stage.graded(number, 1.0)) == ["publish #1 improved 1"]
    assert stage.until(199) == []
    assert stage.until(200) == ["200 stalled ann: silent for 199 seconds", "200 interrupt ann/1"]


def test_who_does_not_wait_for_its_grade_may_be_silent() -> None:
    stage = Stage(2, SHORT)
    stage.at(50, stage.heard("ann"))
    stage.in_grading(60, "ann")
    stage.in_grading(60, "ben", wait=500)
    stage.at(70, stage.graded(1, 1.0))
    assert stage.until(150) == ["150 stalled ann: silent for 100 seconds", "150 interrupt ann/1"]


def test_of_several_grades_the_last_is_waited_for() -> None:
    stage = Stage(rules=replace(SHORT, grade_timeout=9e9))
    stage.in_grading(2, "ann", wait=500)
    stage.in_grading(3, "ann", wait=10)
    assert stage.until(601) == []
    stage.until(602)
    assert stage["ann"].phase is Phase.INTERRUPTED


# --- deaf ---------------------------------------------------------------------------------------------------------


def test_an_agent_deaf_to_everything_is_named_retired_and_delays_nobody() -> None:
    stage = Stage(2, REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.until(12) == ["12 terminate ann/1"]
    # Another one's heartbeat is as quick as ever.
    assert stage.tried(13, "ben", 1.0) == ["publish #2 improved 1", "interrupt ben/1"]
    assert stage.resumed("ben", 13)[1:] == [
        "spawn ben/2: heartbeat, session of ben, told 0, owed reflect:h2",
        "heartbeat ben: reflect (h2) received",
    ]
    assert stage.until(100) == [
        "17 kill ann/1",
        "19 kill ann/1",
        "21 kill ann/1",
        "23 kill ann/1",
        "25 kill ann/1",
        "27 alert run-alert-1 of ann: ann has retired: launch 1 cannot be killed",
    ]
    agent = stage["ann"]
    assert (agent.phase, agent.why, agent.deadline) == (Phase.RETIRED, "launch 1 cannot be killed", None)
    assert stage.owed("ann") == ["reflect h1"]
    # What it prints now is not heard; while its process lives there is no other.
    assert stage.at(101, stage.heard("ann", busy="tool"), stage.lingered("ann")) == []
    assert stage["ann"].busy == ""


def test_an_agent_whose_process_ends_after_it_was_given_up_comes_back() -> None:
    stage = Stage(rules=REFLECTING)
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 1.0))
    stage.in_grading(3, "ann")
    assert stage.until(28)[-1] == "28 alert run-alert-1 of ann: ann has retired: launch 1 cannot be killed"
    assert stage.at(30, stage.exited("ann", Ending.CRASHED)) == [
        "exited ann: launch 1 ended: crashed",
        "spawn ann/2: killed, session of ann, told 0, owed reflect:h1",
    ]
    assert stage["ann"].kills == 0


def test_an_agent_that_retired_by_itself_does_not_come_back() -> None:
    stage = Stage(2)
    stage.at(2, stage.exited("ann", Ending.TERMINAL, "the key was revoked"))
    assert stage.at(3, stage.exited("ann"), on.SpawnFailed(who="ann", launch=1, reason="?")) == []
    assert stage["ann"].phase is Phase.RETIRED


@pytest.mark.parametrize(("detail", "why"), [("no key", "no key"), ("", "its program says that going on is pointless")])
def test_a_terminal_end_retires_with_its_reason(detail: str, why: str) -> None:
    stage = Stage(2)
    assert stage.at(2, stage.exited("ann", Ending.TERMINAL, detail)) == [
        "exited ann: launch 1 ended: terminal",
        f"alert run-alert-1 of ann: ann has retired: {why}",
    ]
    assert (stage["ann"].phase, stage["ann"].why, stage["ann"].deadline) == (Phase.RETIRED, why, None)


def test_who_obeys_the_second_signal_goes_on_with_what_it_was_interrupted_for() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.until(13) == ["12 terminate ann/1"]
    assert stage.at(14, stage.exited("ann", Ending.CRASHED))[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    ]


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
        "47 alert run-alert-1 of ann: ann has retired: launch 2 cannot be killed",
        "47 finish: every agent has retired",
    ]


def test_without_any_grace_the_signals_follow_each_other_at_once() -> None:
    stage = Stage(rules=replace(REFLECTING, interrupt_grace=0.0, terminate_grace=0.0))
    assert stage.tried(2, "ann", 1.0)[1:] == ["interrupt ann/1", "terminate ann/1", "kill ann/1"]


# --- what a program leaves behind ---------------------------------------------------------------------------------


def test_what_an_ended_program_leaves_behind_is_ended_before_the_next_starts() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.lingered("ann"), stage.lingered("ann")) == ["terminate ann/1"]
    assert stage["ann"].phase is Phase.TERMINATED
    assert stage.until(8) == ["8 kill ann/1"]
    # Its turn ended as it did; that we cleaned up behind it makes it no other.
    assert stage.at(9, stage.exited("ann"))[1:] == ["spawn ann/2: turn ended, session of ann, told 0"]


def test_an_interrupted_program_that_leaves_something_behind_goes_on_for_its_own_reason() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.at(3, stage.lingered("ann")) == ["terminate ann/1"]
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED))[1:] == [
        "spawn ann/2: heartbeat, session of ann, told 0, owed reflect:h1"
    ]


def test_a_crash_that_leaves_something_behind_is_still_a_crash() -> None:
    stage = Stage()
    stage.at(2, stage.lingered("ann"))
    assert stage.at(3, stage.exited("ann", Ending.CRASHED, "boom"))[1:] == ["crashed ann: launch 1: boom"]


def test_the_seed_without_a_score_is_no_mark_to_beat() -> None:
    stage = Stage(started=False)
    stage.fleet = type(stage.fleet)()
    stage.at(0, on.Opened(run="run", agents=("ann",), baseline=attempt_zero(None)))
    assert stage["ann"].progress.best is None
