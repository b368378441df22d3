"""An attempt's way, as transcripts: from a submission to a published record, whoever was at fault."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, attempt_zero, submitted

from attempts.progress import Progress
from attempts.record import Attempt, Direction, Kind, Verdict, attempt_from_dict, to_dict
from coral.fleet import events as on
from coral.fleet.run_state import AttemptStep

NOISY = replace(QUIET_RULES, noise=0.5)


def test_a_submission_is_taken_in_graded_and_published() -> None:
    stage = Stage()
    assert stage.at(2, stage.submission("ann")) == ["take in #1: commit 1 of ann", "accept 1 of ann as #1"]
    assert stage.at(3, stage.taken(1)) == ["grade #1/1: commit 1"]
    assert stage.at(5, stage.graded(1, 1.5)) == ["publish #1 improved 1.5"]
    settled = stage.pending(1)
    assert (settled.step, settled.deadline, settled.waited_until) == (AttemptStep.SETTLED, None, 0.0)
    assert stage.at(6, on.Published(number=1)) == []
    assert stage.fleet.pending == {}
    assert stage.fleet.run.progress == stage["ann"].progress == Progress(1, 1.5, 1, 0, 1)


def test_a_record_says_everything_that_is_known_graded_or_not() -> None:
    stage = Stage()
    for _ in range(2):
        stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    stage.at(3, replace(stage.taken(3), commit="c" * 40, tree="7" * 40, parent="a" * 40))
    stage.at(4, replace(stage.graded(3, 2.5), feedback="good", metrics={"gap": 0.5}, seconds=1.25, reason="unsaid"))
    assert stage.published() == Attempt(
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
    stage = Stage()
    submission = replace(stage.submission("ann").submission, tree="7" * 40)
    stage.at(2, on.Submitted(submission=submission))
    stage.at(2, on.IntakeFailed(number=1, reason="a link leaves the tree", our_fault=False))
    record = stage.published()
    assert (record.commit, record.tree, record.seconds) == (submission.commit, "7" * 40, 0.0)


def test_attempts_are_counted_in_the_order_of_their_grades() -> None:
    stage = Stage(2)
    stage.in_grading(2, "ann", "ben", "ann")
    assert stage.at(3, stage.graded(3, 1.0)) == ["publish #3 improved 1"]
    assert stage.at(4, stage.graded(2, 0.5), stage.graded(1, 0.7)) == [
        "publish #2 improved 0.5",
        "publish #1 regressed 0.7",
    ]
    orders = {number: pending.attempt.order for number, pending in stage.fleet.pending.items() if pending.attempt}
    assert orders == {3: 1, 2: 2, 1: 3}
    assert stage.fleet.run.progress == Progress(3, 1.0, 3, 2, 3)
    assert stage["ann"].progress == Progress(2, 1.0, 3, 1, 2)
    assert stage["ben"].progress == Progress(1, 0.5, 2, 0, 1)


def test_the_seed_is_what_the_first_attempt_has_to_beat_and_opening_twice_changes_nothing() -> None:
    stage = Stage(baseline=2.0)
    assert stage.tried(2, "ann", 1.0) == ["publish #1 regressed 1"]
    assert stage["ann"].progress == Progress(1, 2.0, 0, 1, 1)
    assert stage.fleet.run.progress == Progress(1, 2.0, 0, 1, 1)
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


def test_a_submission_that_is_repeated_or_of_nobody_is_not_graded() -> None:
    stage = Stage()
    submission = stage.submission("ann")
    assert stage.at(2, submission, submission) == [
        "take in #1: commit 1 of ann",
        "accept 1 of ann as #1",
        "discard 1 of ann",
    ]
    assert stage.at(3, submission) == ["discard 1 of ann"]
    assert stage["ann"].submitted == 1
    stage = Stage()
    assert stage.at(2, submitted("eve", 1)) == []


def test_submissions_in_any_order_are_told_from_repeats() -> None:
    stage = Stage(2)
    assert stage.at(2, submitted("ann", 9), submitted("ann", 7))[2:] == [
        "take in #2: commit 7 of ann",
        "accept 7 of ann as #2",
    ]
    # The same id of somebody else is another submission.
    assert stage.at(2, submitted("ben", 9)) == ["take in #3: commit 9 of ben", "accept 9 of ben as #3"]


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
    assert stage.pending(2).step is AttemptStep.GRADING


# --- the same again -----------------------------------------------------------------------------------------------


def test_a_tree_that_was_graded_before_is_tied_at_once_and_no_improvement_whosever_it_was() -> None:
    stage = Stage()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, duplicate=1, duplicate_score=1.0)) == ["publish #2 tied 1 (the same tree as #1)"]
    assert stage["ann"].progress == Progress(2, 1.0, 1, 1, 2)
    stage = Stage(2)
    stage.tried(2, "ann", 5.0)
    stage.at(3, stage.submission("ben"))
    assert stage.at(3, stage.taken(2, duplicate=1, duplicate_score=5.0)) == ["publish #2 tied 5 (the same tree as #1)"]
    assert stage["ben"].progress == Progress(1, 5.0, 2, 1, 1)
    # It was once written with `of`, which only a confirmation has: no reader accepted it.
    stage = Stage()
    stage.at(3, replace(stage.submission("ann")))
    stage.at(3, stage.taken(1, duplicate=0, duplicate_score=0.0))
    record = stage.published()
    assert attempt_from_dict(to_dict(record)) == record
    assert record.of is None


def test_the_same_tree_is_graded_again_where_grades_are_noisy_or_to_confirm() -> None:
    stage = Stage(rules=NOISY)
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, duplicate=1, duplicate_score=1.0)) == ["grade #2/1: commit 2"]
    stage = Stage()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann", kind=Kind.CONFIRM, of=1))
    assert stage.at(3, stage.taken(2, duplicate=1, duplicate_score=1.0)) == ["grade #2/1: commit 2 as confirm"]
    assert stage.at(4, stage.graded(2, 1.5)) == ["publish #2 improved 1.5"]
    assert stage.published().of == 1
    assert stage["ann"].progress == Progress(1, 1.5, 2, 0, 2)


def test_a_trial_costs_budget_and_changes_nothing_else() -> None:
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=()))
    stage.in_grading(2, "ann", kind=Kind.TUNE)
    assert stage.at(3, stage.graded(1, 9.0)) == ["publish #1 improved 9"]
    assert stage["ann"].progress == stage.fleet.run.progress == Progress(0, 0.0, 0, 0, 1)
