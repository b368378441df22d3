"""Agents that read and think first, as transcripts: nothing of theirs is graded until their time or turn is over.

And starts that are spread.
"""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.events import Ending

READING = replace(QUIET_RULES, research={"ann": 600.0})


def test_what_is_handed_in_while_an_agent_reads_is_not_graded_and_others_or_who_has_retired_are_not_held_up() -> None:
    stage = Stage(2, replace(READING, stall=9e9, research={"ann": 5460.0}))
    assert stage["ann"].research_until == 5460
    assert stage["ben"].research_until is None
    assert stage.at(60, stage.submission("ann")) == ["refuse 1 of ann: research (5400)"]
    assert stage["ann"].submitted == 0
    assert stage.at(91, stage.submission("ben"))[-1] == "accept 2 of ben as #1"
    stage = Stage(2, READING)
    stage.at(2, stage.exited("ann", Ending.TERMINAL, detail="no key"))
    assert stage.until(900) == []
    assert stage["ann"].phase is Phase.RETIRED
    assert stage["ann"].pending_messages == ()


def test_when_its_time_is_over_it_is_told_to_begin_once_and_its_work_is_graded() -> None:
    stage = Stage(1, READING)
    assert stage.until(600, including=False) == []
    assert stage.at(600) == ["interrupt ann/1"]
    assert stage["ann"].research_until is None
    # At that very moment it may begin, whether it has heard of it or not.
    assert stage.at(600, stage.submission("ann"))[-1] == "accept 1 of ann as #1"
    assert stage.at(601, stage.exited("ann", Ending.INTERRUPTED)) == [
        "exited ann: launch 1 ended: interrupted",
        "spawn ann/2: heartbeat, session of ann, told 0, owed begin:h1",
    ]
    assert stage.at(602, stage.heard("ann")) == ["heartbeat ann: begin (h1) received"]
    assert stage["ann"].awaiting_reply == ()
    assert stage.until(1200) == []
    stage = Stage(1, READING)
    assert stage.until(600, including=False) == []
    said = stage.at(600, stage.submission("ann"))
    assert said[1:] == ["accept 1 of ann as #1", "interrupt ann/1"]
    stage = Stage(1, READING)
    stage.at(590, stage.heard("ann", busy="tool"))
    assert stage.until(649) == []
    assert stage.until(650) == ["650 interrupt ann/1"]


def test_an_agent_that_ends_its_turn_has_read_enough_but_not_where_it_is_stopped() -> None:
    stage = Stage(1, READING)
    assert stage.at(100, stage.exited("ann")) == [
        "exited ann: launch 1 ended: clean",
        "spawn ann/2: turn ended, session of ann, told 0, owed begin:h1",
    ]
    stage.at(101, stage.heard("ann"))
    assert stage.at(102, stage.submission("ann"))[-1] == "accept 1 of ann as #1"
    assert stage.until(1200) == []
    # Its time runs once, and not with each turn.
    assert "begin" not in stage.at(1201, stage.exited("ann"))[-1]
    stage = Stage(1, READING)
    stage.stop(2, "night")
    stage.at(3, stage.exited("ann", Ending.CLEAN))
    assert stage["ann"].research_until == 600
    stage.at(4, on.Resumed())
    stage.at(4, stage.heard("ann"))
    assert stage.until(600) == ["600 interrupt ann/2"]


def test_work_without_progress_counts_from_the_end_of_the_reading() -> None:
    stage = Stage(1, replace(READING, stall=9e9, no_progress=1000.0))
    assert stage.until(600) == ["600 interrupt ann/1"]
    stage.resumed("ann", 600)
    assert stage.until(1599) == []
    assert stage.until(1600) == ["1600 look ann/2"]
    # And so where it ends its turn before.
    stage = Stage(1, replace(READING, stall=9e9, no_progress=1000.0))
    stage.at(500, stage.exited("ann"))
    stage.at(500, stage.heard("ann"))
    assert stage.until(1500) == ["1500 look ann/2"]


@pytest.mark.parametrize("ending", [Ending.CRASHED, Ending.UNKNOWN_SESSION, Ending.LIMIT])
def test_another_end_is_no_end_of_the_reading(ending: Ending) -> None:
    stage = Stage(1, READING)
    stage.at(2, stage.exited("ann", ending, until=20.0))
    stage.until(60)
    assert stage["ann"].launch == 2
    assert stage["ann"].research_until == 600


# --- starts that are spread -----------------------------------------------------------------------------------------


def started(lines: list[str]) -> list[str]:
    return [line.partition(":")[0] for line in lines if "spawn" in line]


def test_agents_start_one_after_the_other_and_come_back_so_also_where_their_machine_died() -> None:
    stage = Stage(3, replace(QUIET_RULES, stagger=20.0), started=False)
    assert started(stage.opening + stage.until(100)) == ["spawn ann/1", "20 spawn ben/1", "40 spawn cid/1"]
    stage.stop(101, "night")
    stage.at(102, *(stage.exited(name, Ending.INTERRUPTED) for name in stage.names))
    assert started(stage.at(200, on.Resumed()) + stage.until(300)) == [
        "spawn ann/2",
        "220 spawn ben/2",
        "240 spawn cid/2",
    ]
    stage = Stage(3, replace(QUIET_RULES, stagger=20.0), started=False)
    stage.until(100)
    lost = [stage.exited(name, Ending.LOST) for name in stage.names]
    assert started(stage.at(200, on.Resumed(), *lost) + stage.until(300)) == [
        "spawn ann/2",
        "220 spawn ben/2",
        "240 spawn cid/2",
    ]


@pytest.mark.parametrize(("stagger", "between"), [(20.0, 20), (0.0, 0)])
def test_after_a_pause_of_the_whole_fleet_they_start_in_turn(stagger: float, between: float) -> None:
    rules = replace(QUIET_RULES, stagger=stagger, breaker_crashes=3, breaker_pause=100.0)
    stage = Stage(3, rules, started=False)
    stage.until(100)
    stage.at(100, *(stage.exited(name, Ending.CRASHED) for name in stage.names))
    assert stage.breaker.paused_until == 200
    assert started(stage.until(300)) == [
        "200 spawn ann/2",
        f"{200 + between} spawn ben/2",
        f"{200 + 2 * between} spawn cid/2",
    ]


def test_whose_own_pause_is_longer_waits_for_that() -> None:
    rules = replace(QUIET_RULES, stagger=20.0, backoff=300.0, breaker_crashes=2, breaker_pause=100.0)
    stage = Stage(2, rules, started=False)
    stage.until(100)
    stage.at(100, *(stage.exited(name, Ending.CRASHED) for name in stage.names))
    deadlines = [stage[name].deadline for name in stage.names]
    stage.until(300)
    assert [stage[name].deadline for name in stage.names] == deadlines
