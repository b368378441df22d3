"""Grades, as transcripts: whose fault a failure was, proven by the seed; too many of ours; the time one may take."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, SEED, Stage, on_request

from attempts.progress import Progress
from attempts.record import Kind
from coral.fleet import events as on
from coral.fleet.actions import Publish
from coral.fleet.events import Outcome
from coral.fleet.rules import Rules
from coral.fleet.run_state import AttemptStep

ONE_SLOT = replace(QUIET_RULES, slots=1)


def test_what_cannot_be_taken_in_is_failed_or_void() -> None:
    stage = Stage()
    stage.at(2, stage.submission("ann"), stage.submission("ann"))
    theirs = on.IntakeFailed(number=1, reason="the commit is not there", our_fault=False)
    ours = on.IntakeFailed(number=2, reason="git was killed", our_fault=True)
    assert stage.at(3, theirs, ours) == ["publish #1 failed (the commit is not there)"]
    # What is ours is tried again, as often as is reasonable.
    for time in (3, 8, 13):
        assert stage.until(time + 4) == []
        assert stage.until(time + 5) == [f"{time + 5} take in #2: commit 2 of ann"]
        assert stage.until(99) == []
        stage.clock = time + 5
        said = stage.at(time + 5, ours)
        assert said == ([] if time < 13 else ["publish #2 void (git was killed)"])
    assert stage["ann"].progress == Progress(1, 1, 1)
    # Echoes: it is settled already.
    assert stage.at(19, theirs, ours, stage.taken(1)) == []
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    stage.at(3, on.IntakeFailed(number=1, reason="git was killed", our_fault=True))
    assert stage.at(4, stage.taken(1)) == ["grade #1/1: commit 1"]
    assert stage.until(99) == []


def test_a_grader_that_says_the_candidate_failed_is_believed() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    said = replace(stage.graded(1, outcome=Outcome.FAILED, reason="circles overlap"), feedback="3 and 7")
    assert stage.at(3, said) == ["publish #1 failed (circles overlap)"]
    assert (stage.published().feedback, stage.published().seconds) == ("3 and 7", 2.0)
    assert stage["ann"].progress == Progress(1, 1, 1)


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.SCORED])
def test_a_crash_that_the_seed_survives_is_the_candidate_s(outcome: Outcome) -> None:
    # A score that is none is no score: that is a crash, too.
    stage = Stage()
    stage.in_grading(2, "ann")
    reason = "MemoryError" if outcome is Outcome.CRASHED else ""
    assert stage.at(3, stage.graded(1, outcome=outcome, reason=reason)) == ["grade #1/2: commit seed as a probe"]
    probe = replace(stage.graded(1, 0.5), feedback="the seed is modest", metrics={"n": 1})
    assert stage.at(4, probe) == [f"publish #1 failed ({reason or 'the grader crashed'})"]
    record = stage.published()
    # What the grader said of the seed is not said of the candidate.
    assert (record.score, record.feedback, record.metrics, record.seconds) == (None, "", {}, 2.0)
    assert stage["ann"].progress == Progress(1, 1, 1)


@pytest.mark.parametrize(
    ("outcome", "reason", "told"),
    [
        (Outcome.CRASHED, "no GPU", "the grader fails on the seed too: no GPU"),
        (Outcome.FAILED, "", "the grader fails on the seed too: Killed"),
    ],
)
def test_a_crash_that_the_seed_shares_is_void(outcome: Outcome, reason: str, told: str) -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="Killed"))
    assert stage.at(4, stage.graded(1, outcome=outcome, reason=reason)) == [f"publish #1 void ({told})"]
    assert stage.published().seconds == 2.0
    assert stage["ann"].progress == Progress(0, 0, 0)


def test_a_seed_that_failed_at_the_start_proves_by_failing_again_that_the_grader_works() -> None:
    # As the seed may of a task whose agents write the solution from nothing.
    for outcome, said in (
        (Outcome.FAILED, "publish #1 failed (no module x)"),
        (Outcome.CRASHED, "publish #1 void (the grader fails on the seed too: no GPU)"),
    ):
        stage = Stage(baseline=None)
        stage.in_grading(2, "ann")
        stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="no module x"))
        reason = "too small" if outcome is Outcome.FAILED else "no GPU"
        assert stage.at(4, stage.graded(1, outcome=outcome, reason=reason)) == [said]
    # The first attempt with a score is the best.
    stage = Stage(baseline=None)
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, 0.5)) == ["publish #1 new best 0.5"]


def test_a_question_of_fault_is_answered_before_the_queue_and_before_earlier_attempts() -> None:
    stage = Stage(rules=ONE_SLOT)
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.CRASHED)) == ["grade #1/2: commit seed as a probe"]
    stage.at(3, stage.submission("ann"))
    stage.at(3, stage.taken(3))
    assert stage.at(4, stage.graded(1, 0.0)) == ["publish #1 failed (the grader crashed)", "grade #2/1: commit 2"]
    stage.at(5, stage.graded(2, outcome=Outcome.CRASHED))
    assert stage.pending(2).deadline == 305
    assert stage.at(6, stage.graded(2, 0.0))[1] == "grade #3/1: commit 3"
    stage = Stage(rules=ONE_SLOT)
    stage.at(2, stage.submission("ann"), stage.submission("ann"), stage.submission("ann"))
    stage.at(2, stage.taken(3))
    # #3 came into the hub first and is being graded; #1 and #2 wait.
    stage.at(3, stage.taken(2), stage.taken(1))
    assert stage.at(4, stage.graded(3, outcome=Outcome.CRASHED)) == ["grade #3/2: commit seed as a probe"]
    assert stage.at(5, stage.graded(3, 1.0))[1:] == ["grade #1/1: commit 1"]
    assert stage.at(6, stage.graded(1, 1.0))[1:] == ["grade #2/1: commit 2"]


def test_fewer_slots_than_are_taken_start_nothing() -> None:
    # A resume may bring fewer than the grades that go on.
    stage = Stage(rules=replace(QUIET_RULES, slots=2))
    stage.in_grading(2, *["ann"] * 5)
    stage.rules = ONE_SLOT
    assert [line for line in stage.at(3, on.Resumed()) if "grade" in line] == []
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 new best 1"]
    assert stage.at(5, stage.graded(2, 1.0))[1:] == ["grade #3/1: commit 3"]


def test_a_grade_or_a_probe_nobody_saw_end_is_done_again() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.LOST)) == ["grade #1/2: commit 1"]
    assert stage.pending(1).deadline == 303
    assert stage.at(4, stage.graded(1, 2.0)) == ["publish #1 new best 2"]
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=Outcome.CRASHED))
    assert stage.at(4, stage.graded(1, outcome=Outcome.LOST)) == ["grade #1/3: commit seed as a probe"]


def test_echoes_of_a_grade_that_is_over_are_dropped() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    first = stage.graded(1, 7.0)
    stage.at(3, stage.graded(1, outcome=Outcome.LOST))
    assert stage.at(4, first) == []
    stage.at(5, stage.graded(1, 1.0))
    assert stage.at(6, replace(first, launch=2)) == []
    assert stage.at(6, on.Published(number=1), on.Published(number=1), replace(first, launch=2)) == []
    assert stage.fleet.run.progress == Progress(1, 0, 1)
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(2, on.Published(number=1)) == []
    assert stage.pending(1).step is AttemptStep.GRADING


def test_an_end_that_comes_before_the_launch_changes_nothing() -> None:
    stage = Stage(rules=ONE_SLOT)
    stage.in_grading(2, "ann", "ann")
    queued = on.Graded(number=2, launch=0, outcome=Outcome.SCORED, score=9.0)
    assert (
        stage.at(3, queued, on.SpawnFailed(who="#2", launch=0, reason="?"), on.LeftProcesses(who="#2", launch=0)) == []
    )
    assert stage.pending(2).step is AttemptStep.QUEUED


def test_a_grade_that_could_not_be_begun_is_tried_again_and_keeps_nobody_waiting_meanwhile() -> None:
    stage = Stage(rules=ONE_SLOT)
    stage.in_grading(2, "ann", "ann")
    echo = on.SpawnFailed(who="#1", launch=7, reason="no such file")
    assert stage.at(3, echo, on.SpawnFailed(who="#9", launch=1, reason="?")) == []
    assert stage.at(3, stage.not_started("#1", "git hangs")) == ["grade #2/1: commit 2"]
    assert (stage.pending(1).step, stage.pending(1).deadline, stage.pending(1).failed_starts) == (
        AttemptStep.QUEUED,
        8,
        1,
    )
    assert stage.at(4, stage.graded(2, 1.0)) == ["publish #2 new best 1"]
    assert stage.until(7.9) == []
    assert stage.until(8) == ["8 grade #1/2: commit 1"]
    assert stage.pending(1).deadline == 308
    assert stage.at(9, stage.not_started("#1", "git hangs")) == []
    assert stage.until(14) == ["14 grade #1/3: commit 1"]
    assert stage.at(15, stage.not_started("#1", "git hangs")) == []
    assert stage.until(20) == ["20 grade #1/4: commit 1"]
    assert stage.at(21, stage.not_started("#1", "git hangs")) == [
        "publish #1 void (the grader could not be started: git hangs)"
    ]
    assert stage.at(22, on.SpawnFailed(who="#1", launch=4, reason="again")) == []
    stage = Stage(rules=ONE_SLOT)
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="odd"))
    assert stage.at(4, stage.not_started("#1", "git hangs")) == []
    assert stage.until(9) == ["9 grade #1/3: commit seed as a probe"]
    stage = Stage(rules=replace(ONE_SLOT, grade_timeout=10.0, terminate_grace=3.0))
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(12, stage.not_started("#1", "it is to end")) == []
    assert stage.until(17) == ["17 grade #1/2: commit 1"]
    assert stage.at(18, stage.graded(1, 1.0)) == ["publish #1 new best 1"]


def test_a_grade_that_waits_to_be_tried_again_stands_in_no_way_of_a_stop() -> None:
    stage = Stage(rules=ONE_SLOT)
    stage.in_grading(2, "ann")
    stage.at(3, stage.not_started("#1", "git hangs"))
    stage.stop(4)
    assert "finish: request (enough)" in stage.at(5, stage.exited("ann", on.Ending.INTERRUPTED))
    assert stage.at(20, on.Resumed())[-1] == "grade #1/2: commit 1"


# --- voids ------------------------------------------------------------------------------------------------------------


def test_three_voids_in_a_row_hold_the_queue_up() -> None:
    stage = Stage()
    stage.in_grading(2, *["ann"] * 4)
    assert stage.voided(3, 1) == ["publish #1 void (the grader fails on the seed too: no disk)"]
    assert stage.voided(4, 2) == ["publish #2 void (the grader fails on the seed too: no disk)"]
    reason = "the grader fails on the seed too: no disk"
    assert stage.voided(5, 3) == [
        f"alert run-alert-1: 3 attempts in a row are void; grading is held up for 300 seconds: {reason}",
        f"publish #3 void ({reason})",
    ]
    stage.at(6, stage.submission("ann"))
    assert stage.at(6, stage.taken(5)) == []
    # What was being graded goes on, and what it came to counts.
    assert stage.at(7, stage.graded(4, 1.0)) == ["publish #4 new best 1"]
    assert stage.until(304.9) == []
    assert stage.until(305) == ["305 grade #5/1: commit 5"]
    stage = Stage()
    stage.in_grading(2, *["ann"] * 4)
    stage.voided(3, 1)
    stage.voided(3, 2)
    stage.at(4, stage.graded(3, reason="wrong"))
    assert stage.voided(5, 4) == ["publish #4 void (the grader fails on the seed too: no disk)"]
    assert stage.fleet.run.voids_in_a_row == 1
    stage = Stage()
    stage.in_grading(2, *["ann"] * 3)
    for number in (1, 2, 3):
        stage.voided(3, number)
    stage.at(4, stage.submission("ann"))
    stage.at(4, stage.taken(4))
    assert stage.until(303) == ["303 grade #4/1: commit 4"]
    assert "4 attempts in a row are void" in stage.voided(310, 4)[0]
    assert stage.fleet.run.queue_paused_until == 610


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
    assert stage.at(11.9, stage.graded(1, 1.0)) == ["publish #1 new best 1"]
    assert stage.until(100) == []


def test_a_probe_has_a_time_of_its_own_and_failing_to_end_is_a_failure_on_the_seed() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.at(9, stage.graded(1, outcome=Outcome.CRASHED, reason="odd"))
    assert stage.until(20) == ["19 terminate #1/2"]
    assert stage.at(20, stage.graded(1, outcome=Outcome.CRASHED, reason="killed")) == [
        "publish #1 void (the grader fails on the seed too: the grader took longer than 10 seconds)"
    ]


def test_a_grader_that_answers_and_leaves_something_behind_is_ended_first_and_its_score_counts() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, on.LeftProcesses(who="#1", launch=9), on.LeftProcesses(who="#9", launch=1)) == []
    assert stage.at(4, stage.lingered("#1"), stage.lingered("#1")) == ["kill #1/1"]
    assert stage.until(5.9) == []
    assert stage.until(6) == ["6 kill #1/1"]
    assert stage.at(7, stage.graded(1, 4.0)) == ["publish #1 new best 4", "grade #2/1: commit 2"]


def test_a_grader_that_cannot_be_killed_is_named_and_its_slot_given_up() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.until(77) == [
        "12 terminate #1/1",
        "15 kill #1/1",
        "17 kill #1/1",
        "21 kill #1/1",
        "29 kill #1/1",
        "45 kill #1/1",
        "77 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "77 publish #1 failed (the grader took longer than 10 seconds)",
        "77 grade #2/1: commit 2",
    ]
    # Should it end after all, nobody asks any more.
    assert stage.at(78, on.Graded(number=1, launch=1, outcome=Outcome.SCORED, score=9.0)) == []


def test_what_a_grade_left_and_nobody_can_kill_fails_the_candidate_and_voids_only_where_the_seed_left_it() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann")
    stage.at(3, stage.lingered("#1"))
    assert stage.until(65)[-1] == "65 publish #1 failed (processes that its grade started could not be killed)"
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="boom"))[-1].startswith("grade #1/2")
    stage.at(4, stage.checked_out(1), stage.lingered("#1"))
    assert stage.until(66)[-1] == "66 publish #1 void (processes that its grade started could not be killed)"


def test_kills_are_counted_for_each_launch() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.until(17)
    stage.at(18, stage.graded(1, outcome=Outcome.LOST))
    assert stage.until(100)[-8:] == [
        "28 terminate #1/2",
        "31 kill #1/2",
        "33 kill #1/2",
        "37 kill #1/2",
        "45 kill #1/2",
        "61 kill #1/2",
        "93 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "93 publish #1 failed (the grader took longer than 10 seconds)",
    ]


def test_a_record_says_whether_the_candidate_may_have_written_its_score() -> None:
    for channel in ("closed", "open"):
        stage = Stage()
        stage.in_grading(2, "ann")
        stage.at(3, replace(stage.graded(1, 4.0), channel=channel))
        (published,) = [action.attempt for action in stage.actions if isinstance(action, Publish)]
        assert published.channel == channel


def test_a_record_says_how_its_author_was_sealed() -> None:
    for level in ("bubblewrap", "none"):
        stage = Stage()
        stage.at(1, stage.submission("ann"))
        stage.at(2, replace(stage.taken(1), seal=level))
        stage.at(3, stage.checked_out(1))
        stage.at(4, stage.graded(1, 4.0))
        (published,) = [action.attempt for action in stage.actions if isinstance(action, Publish)]
        assert published.seal == level


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


def test_a_grader_that_says_nobody_is_at_fault_is_believed_and_the_attempt_does_not_count() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.VOID, reason="no graphics card")) == [
        "publish #1 void (no graphics card)"
    ]
    assert stage["ann"].progress == Progress()


def test_of_the_seed_it_means_that_the_candidate_is_not_at_fault_either() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="x")) == ["grade #1/2: commit seed as a probe"]
    said = stage.at(4, stage.graded(1, outcome=Outcome.VOID, reason="no graphics card"))
    assert said == ["publish #1 void (the grader fails on the seed too: no graphics card)"]


def over(launch: int = 1, number: int = 1) -> on.GradeOverLimit:
    return on.GradeOverLimit(number=number, launch=launch, reason="its grade wrote more than 1 GB")


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.SCORED])
def test_a_grade_over_a_limit_is_killed_at_once_and_the_candidate_failed(outcome: Outcome) -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, over(launch=9), over(number=9)) == []
    assert stage.at(4, over(), over()) == ["kill #1/1"]
    assert stage.at(5, stage.graded(1, 9.0, outcome=outcome)) == [
        "publish #1 failed (its grade wrote more than 1 GB)",
        "grade #2/1: commit 2",
    ]
    assert stage.published().score is None
    assert stage.at(6, over()) == []


def test_a_limit_that_the_seed_is_over_as_well_makes_void() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=Outcome.CRASHED, reason="odd"))
    assert stage.at(4, over(launch=2)) == ["kill #1/2"]
    assert stage.at(5, stage.graded(1, outcome=Outcome.CRASHED, reason="killed")) == [
        "publish #1 void (the grader fails on the seed too: its grade wrote more than 1 GB)"
    ]


def test_a_grade_over_a_limit_whose_end_nobody_saw_is_graded_again() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    stage.at(4, over())
    assert stage.at(5, stage.graded(1, outcome=Outcome.LOST)) == ["grade #1/2: commit 1"]
    assert stage.at(6, stage.graded(1, 3.0)) == ["publish #1 new best 3"]


def test_a_grade_over_a_limit_that_cannot_be_killed_failed_for_that_reason() -> None:
    stage = Stage(rules=replace(TIMED, slots=1))
    stage.in_grading(2, "ann")
    stage.at(4, over())
    assert stage.until(70)[-1] == "66 publish #1 failed (its grade wrote more than 1 GB)"
