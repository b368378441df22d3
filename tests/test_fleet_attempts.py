"""An attempt's way, as transcripts: from a submission to a published record, whoever was at fault."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, SEED, Stage, attempt_zero, submitted

from attempts.progress import Progress
from attempts.record import Attempt, Direction, Kind, Verdict, attempt_from_dict, to_dict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.events import Outcome
from coral.fleet.policy import Rules
from coral.fleet.state import Step

NOISY = replace(QUIET_RULES, noise=0.5)


def published(stage: Stage) -> Attempt:
    """The record that was published just now."""
    (attempt,) = [each.attempt for each in stage.actions if isinstance(each, do.Publish)]
    return attempt


def test_a_submission_is_taken_in_graded_and_published() -> None:
    stage = Stage()
    assert stage.at(2, stage.submission("ann")) == ["take in #1: commit 1 of ann", "accept 1 of ann as #1"]
    assert stage.at(3, stage.taken(1)) == ["grade #1/1: commit 1"]
    assert stage.at(5, stage.graded(1, 1.5)) == ["publish #1 improved 1.5"]
    settled = stage.pending(1)
    assert (settled.step, settled.deadline, settled.waited_until) == (Step.SETTLED, None, 0.0)
    assert stage.at(6, on.Published(number=1)) == []
    assert stage.fleet.pending == {}
    assert stage.fleet.run.progress == stage["ann"].progress == Progress(1, 1.5, 1, 0, 1)


def test_a_record_says_everything_that_is_known() -> None:
    stage = Stage()
    for _ in range(2):
        stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    stage.at(3, replace(stage.taken(3), commit="c" * 40, tree="7" * 40, parent="a" * 40))
    stage.at(4, replace(stage.graded(3, 2.5), feedback="good", metrics={"gap": 0.5}, seconds=1.25, reason="unsaid"))
    assert published(stage) == Attempt(
        number=3,
        agent="ann",
        kind=Kind.REAL,
        commit="c" * 40,
        tree="7" * 40,
        parent="a" * 40,
        title="try 3",
        submission=f"{3:020d}",
        submitted_at="wall of 3",
        published_at="wall 4",
        order=3,
        verdict=Verdict.IMPROVED,
        score=2.5,
        feedback="good",
        metrics={"gap": 0.5},
        seconds=1.25,
    )


def test_a_record_that_was_never_graded_keeps_what_was_submitted() -> None:
    stage = Stage()
    submission = replace(stage.submission("ann").submission, tree="7" * 40)
    stage.at(2, on.Submitted(submission=submission))
    stage.at(2, on.NotTaken(number=1, reason="a link leaves the tree", ours=False))
    record = published(stage)
    assert (record.commit, record.tree, record.seconds) == (submission.commit, "7" * 40, 0.0)


def test_attempts_are_counted_in_the_order_of_their_grades() -> None:
    stage = Stage(2)
    stage.in_grading(2, "ann", "ben", "ann")
    assert stage.at(3, stage.graded(3, 1.0)) == ["publish #3 improved 1"]
    assert stage.at(4, stage.graded(2, 0.5), stage.graded(1, 0.7)) == [
        "publish #2 improved 0.5",
        "publish #1 regressed 0.7",
    ]
    orders = {number: each.attempt.order for number, each in stage.fleet.pending.items() if each.attempt}
    assert orders == {3: 1, 2: 2, 1: 3}
    assert stage.fleet.run.progress == Progress(3, 1.0, 3, 2, 3)
    assert stage["ann"].progress == Progress(2, 1.0, 3, 1, 2)
    assert stage["ben"].progress == Progress(1, 0.5, 2, 0, 1)


def test_the_seed_is_what_the_first_attempt_has_to_beat() -> None:
    stage = Stage(baseline=2.0)
    assert stage.tried(2, "ann", 1.0) == ["publish #1 regressed 1"]
    assert stage["ann"].progress == Progress(1, 2.0, 0, 1, 1)
    assert stage.fleet.run.progress == Progress(1, 2.0, 0, 1, 1)


def test_opening_twice_changes_nothing() -> None:
    stage = Stage()
    before = stage.fleet
    assert stage.at(2, on.Opened(run="other", agents=("eve",), baseline=attempt_zero(5.0))) == []
    assert stage.fleet == before


def test_where_less_is_better_and_noise_is_known() -> None:
    stage = Stage(rules=replace(NOISY, direction=Direction.MINIMIZE))
    said = [stage.tried(clock, "ann", score)[0] for clock, score in enumerate((-1.0, -1.3, -0.7, -3.0), 2)]
    assert said == [
        "publish #1 improved -1",
        "publish #2 tied -1.3",
        "publish #3 regressed -0.7",
        "publish #4 improved -3",
    ]
    assert stage["ann"].progress == Progress(4, -3.0, 4, 0, 4)


def test_a_repeated_submission_is_taken_out_of_the_inbox_and_not_graded_twice() -> None:
    stage = Stage()
    submission = stage.submission("ann")
    assert stage.at(2, submission, submission) == [
        "take in #1: commit 1 of ann",
        "accept 1 of ann as #1",
        "discard 1 of ann",
    ]
    assert stage.at(3, submission) == ["discard 1 of ann"]
    assert stage["ann"].submitted == 1


def test_submissions_in_any_order_are_told_from_repeats() -> None:
    stage = Stage(2)
    assert stage.at(2, submitted("ann", 9), submitted("ann", 7))[2:] == [
        "take in #2: commit 7 of ann",
        "accept 7 of ann as #2",
    ]
    # The same id of somebody else is another submission.
    assert stage.at(2, submitted("ben", 9)) == ["take in #3: commit 9 of ben", "accept 9 of ben as #3"]


def test_nobody_is_taken_for_an_agent() -> None:
    stage = Stage()
    assert stage.at(2, submitted("eve", 1)) == []


@pytest.mark.parametrize("score", [1.0, None])
def test_slots_limit_what_is_graded_at_once_and_a_free_one_is_filled_at_once(score: float | None) -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=2))
    stage.at(2, *[stage.submission("ann") for _ in range(5)])
    assert stage.at(2, stage.taken(4), stage.taken(2), stage.taken(3)) == [
        "grade #2/1: commit 2",
        "grade #3/1: commit 3",
    ]
    assert stage.at(3, stage.taken(1)) == []
    said = stage.at(4, stage.graded(3, score))
    assert said[1:] == ["grade #1/1: commit 1"]
    assert stage.at(5, stage.graded(1, 1.0), stage.graded(2, 1.0))[2:] == ["grade #4/1: commit 4"]


def test_a_slow_grade_holds_up_nothing_but_its_slot() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=2))
    stage.in_grading(2, "ann", "ann", "ann")
    assert stage.at(3, stage.graded(1, 1.0)) == ["publish #1 improved 1", "grade #3/1: commit 3"]
    assert stage.at(4, stage.graded(3, 2.0)) == ["publish #3 improved 2"]
    assert stage.pending(2).step is Step.GRADING


# --- the same again -----------------------------------------------------------------------------------------------


def test_a_tree_that_was_graded_before_is_tied_at_once() -> None:
    stage = Stage()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, twin=1, twin_score=1.0)) == ["publish #2 tied 1 (the same tree as #1)"]
    assert stage["ann"].progress == Progress(2, 1.0, 1, 1, 2)


def test_a_copy_of_somebody_s_better_attempt_is_no_improvement() -> None:
    stage = Stage(2)
    stage.tried(2, "ann", 5.0)
    stage.at(3, stage.submission("ben"))
    assert stage.at(3, stage.taken(2, twin=1, twin_score=5.0)) == ["publish #2 tied 5 (the same tree as #1)"]
    assert stage["ben"].progress == Progress(1, 5.0, 2, 1, 1)


def test_the_record_of_a_tie_can_be_read_again() -> None:
    # It was once written with `of`, which only a confirmation has: no reader accepted it.
    stage = Stage()
    stage.at(3, replace(stage.submission("ann")))
    stage.at(3, stage.taken(1, twin=0, twin_score=0.0))
    record = published(stage)
    assert attempt_from_dict(to_dict(record)) == record
    assert record.of is None


def test_where_grades_are_noisy_the_same_tree_is_graded_again() -> None:
    stage = Stage(rules=NOISY)
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, twin=1, twin_score=1.0)) == ["grade #2/1: commit 2"]


def test_a_confirmation_is_measured_again_and_names_what_it_confirms() -> None:
    stage = Stage()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann", kind=Kind.CONFIRM, of=1))
    assert stage.at(3, stage.taken(2, twin=1, twin_score=1.0)) == ["grade #2/1: commit 2"]
    assert stage.at(4, stage.graded(2, 1.5)) == ["publish #2 improved 1.5"]
    assert published(stage).of == 1
    assert stage["ann"].progress == Progress(1, 1.5, 2, 0, 2)


def test_a_trial_costs_budget_and_changes_nothing_else() -> None:
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=()))
    stage.in_grading(2, "ann", kind=Kind.TUNE)
    assert stage.at(3, stage.graded(1, 9.0)) == ["publish #1 improved 9"]
    assert stage["ann"].progress == stage.fleet.run.progress == Progress(0, 0.0, 0, 0, 1)


# --- whose fault it was -------------------------------------------------------------------------------------------


def test_what_cannot_be_taken_in_is_failed_or_void() -> None:
    stage = Stage()
    stage.at(2, stage.submission("ann"), stage.submission("ann"))
    theirs = on.NotTaken(number=1, reason="the commit is not there", ours=False)
    ours = on.NotTaken(number=2, reason="the disk is full", ours=True)
    assert stage.at(3, theirs, ours) == [
        "publish #1 failed (the commit is not there)",
        "publish #2 void (the disk is full)",
    ]
    assert stage["ann"].progress == Progress(1, 0.0, 0, 1, 1)
    # Echoes: it is settled already.
    assert stage.at(4, theirs, ours, stage.taken(1)) == []


def test_a_grader_that_says_the_candidate_failed_is_believed() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    said = replace(stage.graded(1, outcome=Outcome.FAILED, reason="circles overlap"), feedback="3 and 7")
    assert stage.at(3, said) == ["publish #1 failed (circles overlap)"]
    assert (published(stage).feedback, published(stage).seconds) == ("3 and 7", 2.0)
    assert stage["ann"].progress == Progress(1, 0.0, 0, 1, 1)


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.SCORED])
def test_a_crash_that_the_seed_survives_is_the_candidate_s(outcome: Outcome) -> None:
    # A score that is none is no score: that is a crash, too.
    stage = Stage()
    stage.in_grading(2, "ann")
    reason = "MemoryError" if outcome is Outcome.CRASHED else ""
    assert stage.at(3, stage.graded(1, outcome=outcome, reason=reason)) == ["grade #1/2: commit seed as a probe"]
    probe = replace(stage.graded(1, 0.5), feedback="the seed is modest", metrics={"n": 1})
    assert stage.at(4, probe) == [f"publish #1 failed ({reason or 'the grader crashed'})"]
    record = published(stage)
    # What the grader said of the seed is not said of the candidate.
    assert (record.score, record.feedback, record.metrics, record.seconds) == (None, "", {}, 2.0)
    assert stage["ann"].progress == Progress(1, 0.0, 0, 1, 1)


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
    assert published(stage).seconds == 2.0
    assert stage["ann"].progress == Progress(0, 0.0, 0, 0, 0)


def test_a_question_of_fault_is_answered_before_the_queue() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.CRASHED)) == ["grade #1/2: commit seed as a probe"]
    stage.at(3, stage.submission("ann"))
    stage.at(3, stage.taken(3))
    assert stage.at(4, stage.graded(1, 0.0)) == [
        "publish #1 failed (the grader crashed)",
        "grade #2/1: commit 2",
    ]
    stage.at(5, stage.graded(2, outcome=Outcome.CRASHED))
    assert stage.pending(2).deadline == 305
    assert stage.at(6, stage.graded(2, 0.0))[1] == "grade #3/1: commit 3"


def test_a_later_question_of_fault_goes_before_an_earlier_attempt() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=1))
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
    stage.rules = replace(QUIET_RULES, slots=1)
    assert [line for line in stage.at(3, on.Resumed()) if "grade" in line] == []
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 improved 1"]
    assert stage.at(5, stage.graded(2, 1.0))[1:] == ["grade #3/1: commit 3"]


def test_a_grade_nobody_saw_end_is_done_again() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(3, stage.graded(1, outcome=Outcome.LOST)) == ["grade #1/2: commit 1"]
    assert stage.pending(1).deadline == 303
    assert stage.at(4, stage.graded(1, 2.0)) == ["publish #1 improved 2"]


def test_a_probe_nobody_saw_end_is_done_again() -> None:
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
    assert stage.fleet.run.progress == Progress(1, 1.0, 1, 0, 1)


def test_a_grade_is_not_forgotten_because_it_is_said_to_be_published() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    assert stage.at(2, on.Published(number=1)) == []
    assert stage.pending(1).step is Step.GRADING


def test_an_end_that_comes_before_the_launch_changes_nothing() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=1))
    stage.in_grading(2, "ann", "ann")
    queued = on.Graded(number=2, launch=0, outcome=Outcome.SCORED, score=9.0)
    assert stage.at(3, queued, on.SpawnFailed(who="#2", launch=0, reason="?"), on.Lingered(who="#2", launch=0)) == []
    assert stage.pending(2).step is Step.QUEUED


def test_a_grader_that_cannot_be_started_is_no_fault_of_the_candidate() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    echo = on.SpawnFailed(who="#1", launch=7, reason="no such file")
    assert stage.at(3, echo, on.SpawnFailed(who="#9", launch=1, reason="?")) == []
    assert stage.at(3, stage.not_started("#1", "no such file")) == [
        "publish #1 void (the grader could not be started: no such file)"
    ]
    assert stage.at(4, on.SpawnFailed(who="#1", launch=1, reason="again")) == []


# --- time ---------------------------------------------------------------------------------------------------------

TIMED = Rules(seed_commit=SEED, heartbeats=(), grade_timeout=10.0, terminate_grace=3.0)


def test_a_grader_that_takes_too_long_is_terminated_then_killed_and_the_candidate_failed() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.until(16) == ["12 terminate #1/1", "15 kill #1/1"]
    assert stage.at(16, stage.graded(1, outcome=Outcome.CRASHED, reason="killed")) == [
        "publish #1 failed (the grader took longer than 10 seconds)"
    ]
    assert published(stage).seconds == 2.0
    assert stage["ann"].progress.stagnant == 1


def test_a_score_that_comes_too_late_does_not_count() -> None:
    stage = Stage(rules=TIMED)
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.graded(1, 99.0)) == ["publish #1 failed (the grader took longer than 10 seconds)"]


def test_a_grade_that_ends_in_time_needs_no_signal() -> None:
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
    assert stage.at(3, on.Lingered(who="#1", launch=9), on.Lingered(who="#9", launch=1)) == []
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


def test_without_any_grace_the_signals_follow_each_other_at_once() -> None:
    stage = Stage(rules=replace(TIMED, terminate_grace=0.0))
    stage.in_grading(2, "ann")
    assert stage.until(13) == ["12 terminate #1/1", "12 kill #1/1"]


# --- voids --------------------------------------------------------------------------------------------------------


def void(stage: Stage, clock: float, number: int) -> list[str]:
    return stage.at(clock, stage.not_started(f"#{number}", "no disk"))


def test_three_voids_in_a_row_hold_the_queue_up() -> None:
    stage = Stage()
    stage.in_grading(2, *["ann"] * 4)
    assert void(stage, 3, 1) == ["publish #1 void (the grader could not be started: no disk)"]
    assert void(stage, 4, 2) == ["publish #2 void (the grader could not be started: no disk)"]
    reason = "the grader could not be started: no disk"
    assert void(stage, 5, 3) == [
        f"alert run-alert-1: 3 attempts in a row are void; grading is held up for 300 seconds: {reason}",
        f"publish #3 void ({reason})",
    ]
    stage.at(6, stage.submission("ann"))
    assert stage.at(6, stage.taken(5)) == []
    # What was being graded goes on, and what it came to counts.
    assert stage.at(7, stage.graded(4, 1.0)) == ["publish #4 improved 1"]
    assert stage.until(304.9) == []
    assert stage.until(305) == ["305 grade #5/1: commit 5"]


def test_one_more_void_after_the_pause_holds_the_queue_up_again() -> None:
    stage = Stage()
    stage.in_grading(2, *["ann"] * 3)
    for number in (1, 2, 3):
        void(stage, 3, number)
    stage.at(4, stage.submission("ann"))
    stage.at(4, stage.taken(4))
    assert stage.until(303) == ["303 grade #4/1: commit 4"]
    assert "4 attempts in a row are void" in void(stage, 310, 4)[0]
    assert stage.fleet.run.queue_held_until == 610


def test_anything_but_a_void_ends_the_row() -> None:
    stage = Stage()
    stage.in_grading(2, *["ann"] * 4)
    void(stage, 3, 1)
    void(stage, 3, 2)
    stage.at(4, stage.graded(3, reason="wrong"))
    assert void(stage, 5, 4) == ["publish #4 void (the grader could not be started: no disk)"]
    assert stage.fleet.run.voids == 1


# --- the budget of attempts ---------------------------------------------------------------------------------------


def test_no_more_is_taken_than_the_budget_pays_for_with_what_is_on_its_way() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=3))
    stage.tried(2, "ann", 1.0)
    assert stage.at(3, *[stage.submission("ann") for _ in range(3)]) == [
        "take in #2: commit 2 of ann",
        "accept 2 of ann as #2",
        "take in #3: commit 3 of ann",
        "accept 3 of ann as #3",
        "refuse 4 of ann: cannot grade this commit: the budget of 3 attempts is used up "
        "(finish the notes; the run ends when the attempts in hand are graded)",
    ]
    assert stage["ann"].submitted == 3
    # Seen again, because the refusal was lost with its supervisor, it is refused again.
    assert stage.at(4, submitted("ann", 4))[0].startswith("refuse 4 of ann")
    # Were one of them void, the next would be paid for.
    stage.at(5, on.NotTaken(number=2, reason="no disk", ours=True))
    assert stage.at(5, stage.submission("ann"))[1] == "accept 5 of ann as #4"


def test_what_is_settled_but_not_yet_published_is_not_counted_twice() -> None:
    # Its record was on its way to the disk, and the last attempt that the budget pays for was refused.
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=2))
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 1.0))
    assert stage.at(3, stage.submission("ann"))[1] == "accept 2 of ann as #2"
