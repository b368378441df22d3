"""An agent's phases, as transcripts: it waits, runs, is interrupted, terminated, killed, parked, or has retired."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECT, REFLECTING, Stage, attempt_zero, rules_with

from coral.fleet import events as on
from coral.fleet.agent_state import Agent, Phase, Stall
from coral.fleet.agents.back_off import back_off
from coral.fleet.decide import decide
from coral.fleet.events import Ending
from coral.fleet.reasons import START
from coral.fleet.run_state import Fleet

SHORT = replace(QUIET_RULES, stall=100.0)


def test_a_run_opens_with_its_seed_published_and_its_agents_started_one_after_another() -> None:
    stage = Stage(3, replace(REFLECTING, stagger=0.05), started=False)
    assert stage.opening == [
        "publish #0 new best 0",
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
        reason=START,
        launch=1,
        targets={"reflect": 1},
        progress=stage.fleet.run.progress,
        stall=Stall(since=0.0, progress_at=0.0),
    )
    assert stage.fleet.run.id == "run"


def test_nothing_happens_before_a_run_is_opened_and_its_seed_may_have_no_score() -> None:
    stage = Stage(started=False)
    stage.fleet = type(stage.fleet)()
    assert stage.at(0, on.Resumed(), on.Broken(item="a file", reason="it is a folder")) == [
        "alert -alert-1: a file was set aside: it is a folder"
    ]
    assert stage.fleet.run.stopping is None
    stage.at(0, on.Opened(run="run", agents=("ann",), baseline=attempt_zero(None)))
    assert stage.fleet.run.best is None


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (on.Restored(item="the record of #3", found="was deleted"), "restored from the journal"),
        (on.Restored(item="the journal", found="was cut", source="memory"), "restored from memory"),
        (on.Restored(item="it", found="was deleted", source=""), "that cannot be restored"),
    ],
)
def test_what_was_restored_is_an_alert(event: on.Restored, told: str) -> None:
    assert Stage(started=False).at(0, event) == [
        f"alert run-alert-1: {event.item} {event.found}, though only the supervisor may change it; {told}"
    ]


def test_first_words_bring_the_session_which_later_ones_may_leave_out_or_change() -> None:
    stage = Stage(started=False)
    stage.at(3, stage.heard("ann", busy="tool"))
    agent = stage["ann"]
    assert (agent.session, agent.has_output, agent.last_output_at, agent.activity, agent.deadline) == (
        "session of ann",
        True,
        3,
        "tool",
        1203,
    )
    stage.at(4, stage.heard("ann", session=None))
    assert (stage["ann"].session, stage["ann"].activity, stage["ann"].deadline) == ("session of ann", "", 1204)
    stage.at(5, stage.heard("ann", session="another"))
    assert stage["ann"].session == "another"


def test_words_and_ends_of_nobody_are_dropped_and_an_end_is_heard_once() -> None:
    stage = Stage()
    before = stage.fleet
    strangers = (
        on.OutputSeen(agent="eve", launch=1, has_prompt=True),
        on.Exited(agent="eve", launch=1, ending=Ending.CLEAN),
        on.Exited(agent="ann", launch=2, ending=Ending.CLEAN),
        on.Exited(agent="ann", launch=0, ending=Ending.CLEAN),
        on.LeftProcesses(who="eve", launch=1),
        on.LeftProcesses(who="ann", launch=2),
        on.SpawnFailed(who="eve", launch=1, reason="?"),
        on.SpawnFailed(who="ann", launch=2, reason="?"),
        on.OutputSeen(agent="ann", launch=2, has_prompt=True, session="?"),
    )
    assert stage.at(2, *strangers) == []
    assert stage.fleet == before
    stage = Stage()
    end = stage.exited("ann", Ending.CRASHED, "boom")
    assert stage.at(2, end, end) == ["exited ann: launch 1 ended: crashed", "crashed ann: launch 1: crashed (boom)"]
    assert stage.at(3, end, on.SpawnFailed(who="ann", launch=1, reason="?"), stage.lingered("ann")) == []
    assert stage["ann"].crashes == 1


# --- turns --------------------------------------------------------------------------------------------------------


def test_a_turn_with_a_try_or_a_long_one_goes_on_at_once() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.exited("ann")) == [
        "exited ann: launch 1 ended: clean",
        "spawn ann/2: turn ended, session of ann, told 0",
    ]
    # What the last launch tried is no try of this one.
    assert len(stage.at(4, stage.exited("ann"))) == 1
    stage = Stage()
    assert len(stage.at(59.9, stage.exited("ann"))) == 1
    stage = Stage()
    assert len(stage.at(60, stage.exited("ann"))) == 2
    stage = Stage()
    stage.at(100, on.DiskChecked(problem="full"))  # nothing starts
    stage.at(101, stage.exited("ann"))
    assert stage["ann"].deadline == 101


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
    assert all(least < pause <= 1.2 * least for pause, least in zip(pauses, [5, 10, 20, 30, 30], strict=True)), pauses
    assert stage["ann"].unproductive_turns == 5
    # A try that is graded ends the row.
    stage.tried(stage.clock, "ann", 1.0)
    assert stage["ann"].unproductive_turns == 0


def test_a_good_turn_or_a_try_that_is_graded_ends_the_row_of_failures() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(20)
    stage.at(20, stage.exited("ann"))
    stage.until(40)
    assert (stage["ann"].crashes, stage["ann"].unproductive_turns) == (1, 1)
    stage.at(stage["ann"].spawned_at + 60, stage.exited("ann"))
    assert (stage["ann"].crashes, stage["ann"].unproductive_turns, stage["ann"].launch) == (0, 0, 4)
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].crashes == 1
    stage.at(4, stage.graded(1, 1.0))
    assert stage["ann"].crashes == 0


# --- crashes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "detail", "reason"),
    [
        (Ending.CRASHED, "out of memory", "crashed (out of memory)"),
        (Ending.CRASHED, "", "crashed"),
        (Ending.INTERRUPTED, "", "crashed"),
        (Ending.UNKNOWN_SESSION, "", "unknown session"),
        (Ending.UNKNOWN_SESSION, "no conversation found", "unknown session (no conversation found)"),
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
    assert said.endswith(f" spawn ann/2: {reason}{session}, told 0")
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
    stage = Stage(started=False)
    assert stage.at(0, stage.not_started("ann", "permission denied")) == [
        "crashed ann: launch 1: not started (permission denied)"
    ]
    assert stage["ann"].crashes == 1
    assert len(stage.breaker.crashes) == 1


def test_many_crashes_in_a_short_time_hold_the_whole_fleet() -> None:
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=3))
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.at(3, stage.exited("ben", Ending.CRASHED))
    assert stage.at(4, stage.exited("cid", Ending.CRASHED, "no key"))[2:] == [
        "alert run-alert-1: 3 crashes within 60 seconds; nothing starts for 300 seconds. "
        "The last one, of cid: crashed (no key)"
    ]
    # What runs goes on; what ends now waits with the others; one alert is enough.
    stage.in_grading(4, "dot")
    assert stage.at(5, stage.exited("dot")) == ["exited dot: launch 1 ended: clean"]
    assert (stage["dot"].deadline, stage.pending(1).waited_until) == (304, 0)
    stage.at(5, stage.graded(1, 1.0))
    assert stage.until(303.9) == []
    assert [line.split(":")[0] for line in stage.until(304)] == [
        "304 spawn ann/2",
        "304 spawn ben/2",
        "304 spawn cid/2",
        "304 spawn dot/2",
    ]
    stage = Stage(2, replace(QUIET_RULES, breaker_crashes=1))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=100.0), stage.exited("ben", Ending.CRASHED))
    assert [line.split(":")[0] for line in stage.until(400)] == ["302 spawn ann/2", "302 spawn ben/2"]


def test_crashes_of_one_account_hold_no_agent_of_another() -> None:
    accounts = {"ann": "acme", "ben": "acme", "cid": "zeta"}
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=2, accounts=accounts))
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    assert stage.at(3, stage.exited("ben", Ending.CRASHED))[2:] == [
        "alert run-alert-1: 2 crashes of acme within 60 seconds; none of them starts for 300 seconds. "
        "The last one, of ben: crashed"
    ]
    assert stage.at(4, stage.exited("cid"), stage.exited("dot"))[2:] == []
    assert [line.split(":")[0].split()[1:] for line in stage.until(302)] == [["spawn", "cid/2"], ["spawn", "dot/2"]]
    assert [line.split(":")[0] for line in stage.until(303)] == ["303 spawn ann/2", "303 spawn ben/2"]


def test_the_breaker_scales_with_the_agents_of_its_account() -> None:
    names = tuple(f"agent-{place}" for place in range(12))
    opened = on.Opened(run="run", agents=names, baseline=attempt_zero(0.0))
    rules = replace(QUIET_RULES, breaker_crashes=2, heartbeats=())
    fleet, _ = decide(Fleet(), [opened], on.Moment(run_time=0.0, wall_time=""), rules)
    failed = [on.SpawnFailed(who=name, launch=1, reason="no such program") for name in names]
    after, _ = decide(fleet, failed[:5], on.Moment(run_time=1.0, wall_time=""), rules)
    assert after.run.breakers[""].paused_until == 0.0
    after, _ = decide(after, failed[5:6], on.Moment(run_time=1.0, wall_time=""), rules)
    assert after.run.breakers[""].paused_until == 301.0


def test_the_breaker_holds_no_launch_that_follows_our_own_interrupt() -> None:
    stage = Stage(2, replace(rules_with(REFLECT), breaker_crashes=1))
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.exited("ben", Ending.CRASHED))
    assert stage.breaker.paused_until == 303
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED))[1].startswith("spawn ann/2: heartbeat")


def test_the_breaker_counts_within_its_window_only() -> None:
    rules = replace(QUIET_RULES, breaker_crashes=3, backoff=1.0, backoff_max=1.0)
    stage = Stage(3, rules)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(30)
    stage.at(30, stage.exited("ben", Ending.CRASHED))
    stage.until(62)
    # The crash at 2 was sixty seconds ago.
    assert len(stage.at(62, stage.exited("cid", Ending.CRASHED))) == 2
    assert stage.breaker.crashes == (30, 62)
    stage.until(89)
    assert "alert" in stage.at(89, stage.exited("ann", Ending.CRASHED))[2]


def test_crashes_while_the_fleet_is_held_count_for_what_comes_after() -> None:
    rules = replace(QUIET_RULES, breaker_crashes=2, breaker_pause=10.0)
    stage = Stage(4, rules)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    assert len(stage.at(2, stage.exited("ben", Ending.CRASHED))) == 3
    assert stage.breaker.crashes == ()
    stage.at(9, stage.exited("cid", Ending.CRASHED))
    assert stage.breaker.paused_until == 12
    # At twelve the hold is over, and this is the second crash within a minute.
    assert "alert" in stage.at(12, stage.exited("dot", Ending.CRASHED))[2]
    assert stage.breaker.paused_until == 22


# --- limits -------------------------------------------------------------------------------------------------------


def test_a_limit_parks_an_agent_until_the_time_the_provider_named_or_for_the_longest_back_off() -> None:
    stage = Stage(2)
    assert stage.at(2, stage.exited("ann", Ending.LIMIT, until=3600.0)) == [
        "exited ann: launch 1 ended: limit",
        "alert run-alert-1 of ann: ann has reached a usage limit and is parked",
    ]
    assert stage["ann"].phase is Phase.PARKED
    assert stage.until(3602)[-1] == "3602 spawn ann/2: at limit, session of ann, told 0"
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    assert stage["ann"].deadline == 602


@pytest.mark.parametrize("until", [0.0, 3.0])
def test_a_limit_that_is_over_already_is_not_asked_again_at_once(until: float) -> None:
    # A program that named a time in the past was started again and again without a pause.
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=until))
    assert stage["ann"].deadline == 2 + back_off("run", stage["ann"], 1, stage.rules)
