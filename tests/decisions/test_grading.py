"""The time that a grade may take, as transcripts: ended in order, and given up by name."""

from dataclasses import replace

from stage import SEED, Stage, on_request

from attempts.record import Kind
from coral.fleet import events as on
from coral.fleet.events import Outcome
from coral.fleet.rules import Rules
from coral.fleet.run_state import AttemptStep

TIMED = Rules(seed_commit=SEED, heartbeats=(), grade_timeout=10.0, terminate_grace=3.0)


def test_a_grader_that_takes_too_long_is_terminated_then_killed_and_the_candidate_failed() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.until(16) == ["12 terminate #1/1", "15 kill #1/1"]
    assert stage.at(16, stage.graded(1, outcome=Outcome.CRASHED, reason="killed")) == [
        "publish #1 failed (the grader took longer than 10 seconds)"
    ]
    assert stage.published().seconds == 2.0
    assert stage["ann"].progress.stagnant == 1
    stage = Stage(rules=replace(TIMED, terminate_grace=0.0))
    stage.in_grading(2, "ann")
    assert stage.until(13) == ["12 terminate #1/1", "12 kill #1/1"]


def test_a_score_counts_in_time_and_not_when_it_comes_too_late() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert (stage.pending(1).step, stage.pending(1).deadline) == (AttemptStep.TERMINATED, 15)
    assert stage.at(13, stage.graded(1, 99.0)) == ["publish #1 failed (the grader took longer than 10 seconds)"]
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.at(11.9, stage.graded(1, 1.0)) == ["publish #1 improved 1"]
    assert stage.until(100) == []


def test_a_probe_has_a_time_of_its_own_and_failing_to_end_is_a_failure_on_the_seed() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.at(9, stage.graded(1, outcome=Outcome.CRASHED, reason="odd"))
    assert stage.until(20) == ["19 terminate #1/2"]
    assert stage.at(20, stage.graded(1, outcome=Outcome.CRASHED, reason="killed")) == [
        "publish #1 void (the grader fails on the seed too: killed)"
    ]


def test_a_grader_that_answers_and_leaves_something_behind_is_ended_first_and_its_score_counts() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, on.LeftProcesses(who="#1", launch=9), on.LeftProcesses(who="#9", launch=1)) == []
    assert stage.at(4, stage.lingered("#1"), stage.lingered("#1")) == ["kill #1/1"]
    assert stage.until(5.9) == []
    assert stage.until(6) == ["6 kill #1/1"]
    assert stage.at(7, stage.graded(1, 4.0)) == ["publish #1 improved 4", "grade #2/1: commit 2"]


def test_a_grader_that_cannot_be_killed_is_named_and_its_slot_given_up() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.until(25) == [
        "12 terminate #1/1",
        "15 kill #1/1",
        "17 kill #1/1",
        "19 kill #1/1",
        "21 kill #1/1",
        "23 kill #1/1",
        "25 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "25 publish #1 void (the grader could not be killed)",
        "25 grade #2/1: commit 2",
    ]
    # Should it end after all, nobody asks any more.
    assert stage.at(26, on.Graded(number=1, launch=1, outcome=Outcome.SCORED, score=9.0)) == []


def test_kills_are_counted_for_each_launch() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.until(17)
    stage.at(18, stage.graded(1, outcome=Outcome.LOST))
    assert stage.until(100)[-8:] == [
        "28 terminate #1/2",
        "31 kill #1/2",
        "33 kill #1/2",
        "35 kill #1/2",
        "37 kill #1/2",
        "39 kill #1/2",
        "41 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "41 publish #1 void (the grader could not be killed)",
    ]


def test_the_grader_or_the_probe_starts_in_the_turn_that_sees_its_commit_checked_out() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann", kind=Kind.TUNE)
    assert stage.at(3, stage.checked_out(1)) == ["start the grader of #1/1 as tune"]
    # An echo starts no second one, nor does what is said of another launch or attempt.
    assert stage.at(4, stage.checked_out(1), on.CheckedOut(number=1, launch=2), on.CheckedOut(number=9, launch=1)) == []
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.checked_out(1)) == []
    assert stage.at(13, stage.graded(1, outcome=Outcome.CRASHED)) == [
        "publish #1 failed (the grader took longer than 10 seconds)"
    ]
    assert stage.at(14, on.CheckedOut(number=1, launch=1)) == []
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.checked_out(1))
    stage.at(4, stage.graded(1, outcome=Outcome.CRASHED))
    assert stage.at(5, stage.checked_out(1)) == ["start the grader of #1/2 as a probe"]


def test_a_checkout_that_outlasts_the_time_of_its_grade_is_done_again_or_on_a_full_disk_makes_room() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.checked_out(1)) == ["grade #1/2: commit 1"]
    assert stage.at(14, stage.checked_out(1)) == ["start the grader of #1/2"]
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.at(3, on.DiskChecked(problem="no space"))
    stage.until(12)
    assert stage.at(13, stage.checked_out(1)) == ["tidy #1/1 whole"]


def test_a_stop_or_a_leave_comes_before_a_grader_that_has_not_started() -> None:
    stage = Stage(rules=replace(TIMED, slots=3))
    stage.in_grading(2, "ann", "ann", "ann")
    stop = stage.asks("operator", on.Stop(end=on_request()))
    said = stage.at(3, stage.checked_out(1), stop, stage.checked_out(2))
    # What was started before the stop is ended; what was checked out after it waits for a resume.
    assert [line for line in said if "#" in line] == ["start the grader of #1/1", "terminate #1/1", "terminate #3/1"]
    assert stage.at(4, stage.checked_out(3)) == []
    assert [stage.pending(number).step for number in (1, 2, 3)] == [
        AttemptStep.TERMINATED,
        AttemptStep.QUEUED,
        AttemptStep.QUEUED,
    ]
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    leave = stage.asks("operator", on.Leave(end=on_request()))
    said = stage.at(3, leave, stage.checked_out(1))
    assert [line for line in said if "#" in line] == []
    assert stage.pending(1).step is AttemptStep.QUEUED
