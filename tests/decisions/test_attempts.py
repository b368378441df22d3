"""An attempt's way, as transcripts: from a submission to a published record, whoever was at fault."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, attempt_zero, submitted

from attempts.failures import FailureGroup
from attempts.noise import NoiseSetting
from attempts.progress import Progress
from attempts.record import Attempt, Direction, Kind, Verdict, attempt_from_dict, to_dict
from attempts.standing import Scored, Scoring
from coral.fleet import events as on
from coral.fleet.run_state import AttemptStep

NOISY = replace(QUIET_RULES, scoring=Scoring(noise=NoiseSetting(deviation=0.1)))


def test_a_submission_is_taken_in_graded_and_published() -> None:
    stage = Stage()
    assert stage.at(2, stage.submission("ann")) == ["take in #1: commit 1 of ann", "accept 1 of ann as #1"]
    assert stage.at(3, stage.taken(1)) == ["grade #1/1: commit 1"]
    assert stage.at(5, stage.graded(1, 1.5)) == ["publish #1 new best 1.5"]
    settled = stage.pending(1)
    assert (settled.step, settled.deadline, settled.waited_until) == (AttemptStep.SETTLED, None, 0.0)
    assert stage.at(6, on.Published(number=1)) == []
    assert stage.fleet.pending == {}
    assert stage.fleet.run.progress == stage["ann"].progress == Progress(1, 0, 1)


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
        verdict=Verdict.NEW_BEST,
        score=2.5,
        against=1,
        delta=1.5,
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
    assert stage.at(3, stage.graded(3, 1.0)) == ["publish #3 new best 1"]
    assert stage.at(4, stage.graded(2, 0.5), stage.graded(1, 0.7)) == [
        "publish #2 own best 0.5",
        "publish #1 worse 0.7",
    ]
    orders = {number: pending.attempt.order for number, pending in stage.fleet.pending.items() if pending.attempt}
    assert orders == {3: 1, 2: 2, 1: 3}
    assert stage.fleet.run.progress == Progress(3, 2, 3)
    assert stage["ann"].progress == Progress(2, 1, 2)
    assert stage["ben"].progress == Progress(1, 0, 1)


def test_the_seed_is_what_the_first_attempt_has_to_beat_and_opening_twice_changes_nothing() -> None:
    stage = Stage(baseline=2.0)
    assert stage.tried(2, "ann", 1.0) == ["publish #1 worse 1"]
    assert stage["ann"].progress == Progress(1, 1, 1)
    assert stage.fleet.run.progress == Progress(1, 1, 1)
    stage = Stage()
    before = stage.fleet
    assert stage.at(2, on.Opened(run="other", agents=("eve",), baseline=attempt_zero(5.0))) == []
    assert stage.fleet == before


def test_where_less_is_better_and_noise_is_known() -> None:
    scoring = Scoring(direction=Direction.MINIMIZE, noise=NoiseSetting(deviation=0.1))
    stage = Stage(rules=replace(QUIET_RULES, scoring=scoring, confirm_share=0.0))
    said = [stage.tried(clock, "ann", score)[0] for clock, score in enumerate((-1.0, -1.3, -0.7, -3.0), 2)]
    assert said == [
        "publish #1 own best -1",
        "publish #2 tied -1.3",
        "publish #3 worse -0.7",
        "publish #4 own best -3",
    ]
    assert stage["ann"].progress == Progress(4, 0, 4)
    assert (stage.fleet.run.best, stage.fleet.run.progress.stagnant) == (0, 4)  # one noisy score proves nothing


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
    assert stage.at(3, stage.graded(1, 1.0)) == ["publish #1 new best 1", "grade #3/1: commit 3"]
    assert stage.at(4, stage.graded(3, 2.0)) == ["publish #3 new best 2"]
    assert stage.pending(2).step is AttemptStep.GRADING


# --- the same again -----------------------------------------------------------------------------------------------


def test_a_tree_that_was_graded_before_is_tied_at_once_and_no_improvement_whosever_it_was() -> None:
    stage = Stage()
    stage.tried(2, "ann", 1.0)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, duplicate=Scored(1, 1.0))) == ["publish #2 tied 1 (the same tree as #1)"]
    assert stage["ann"].progress == Progress(2, 1, 2)
    stage = Stage(2)
    stage.tried(2, "ann", 5.0)
    stage.at(3, stage.submission("ben"))
    assert stage.at(3, stage.taken(2, duplicate=Scored(1, 5.0))) == ["publish #2 tied 5 (the same tree as #1)"]
    assert stage["ben"].progress == Progress(1, 1, 1)
    stage = Stage()
    stage.at(3, replace(stage.submission("ann")))
    stage.at(3, stage.taken(1, duplicate=Scored(0, 0.0)))
    record = stage.published()
    assert attempt_from_dict(to_dict(record)) == record
    assert record.of is None


def test_a_score_that_is_copied_came_through_the_channel_of_its_grade() -> None:
    for channel in ("closed", "open"):
        stage = Stage()
        stage.tried(2, "ann", 1.0)
        stage.at(3, stage.submission("ann"))
        stage.at(3, stage.taken(2, duplicate=Scored(1, 1.0), channel=channel))
        assert stage.published().channel == channel


def test_the_same_tree_is_graded_again_where_grades_are_noisy_and_measures_the_first() -> None:
    stage = Stage(rules=NOISY)
    stage.tried(2, "ann", 0.1)
    stage.at(3, stage.submission("ann"))
    assert stage.at(3, stage.taken(2, duplicate=Scored(1, 0.1))) == ["grade #2/1: commit 2"]
    assert stage.at(4, stage.graded(2, 9.0))[0] == "publish #2 tied 9"
    assert stage.published().of == 1
    assert stage.fleet.measured[1].scores == (0.1, 9.0)
    assert stage["ann"].progress == Progress(2, 2, 2)


def test_a_trial_costs_budget_and_changes_nothing_else() -> None:
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=()))
    stage.in_grading(2, "ann", kind=Kind.TUNE)
    assert stage.at(3, stage.graded(1, 9.0)) == ["publish #1 own best 9"]
    assert stage["ann"].progress == stage.fleet.run.progress == Progress(0, 0, 1)


def test_one_reason_that_fails_most_attempts_is_an_alert_once() -> None:
    stage = Stage()
    said = [line for clock in range(2, 22) for line in stage.tried(clock, "ann", None if clock > 3 else 1.0)]
    assert [line for line in said if line.startswith("alert")] == [
        "alert run-alert-1: 8 of 10 attempts failed for one reason: wrong"
    ]
    assert (stage.fleet.run.failed, stage.fleet.run.failures) == (18, {"wrong": FailureGroup(18, "wrong")})


def fails(stage: Stage, count: int, reason: str) -> list[str]:
    """So many attempts fail for this reason; the alerts of it."""
    said = []
    for _ in range(count):
        (number,) = stage.in_grading(stage.clock + 1, "ann")
        said += stage.at(stage.clock + 1, stage.graded(number, reason=reason))
        stage.at(stage.clock, on.Published(number=number))
    return [line for line in said if line.startswith("alert")]


def scores(stage: Stage, count: int) -> None:
    for _ in range(count):
        (number,) = stage.in_grading(stage.clock + 1, "ann")
        stage.at(stage.clock + 1, stage.graded(number, 1.0))
        stage.at(stage.clock, on.Published(number=number))


def test_one_reason_is_an_alert_from_more_than_half_of_ten_attempts_on() -> None:
    stage = Stage()
    scores(stage, 5)
    assert fails(stage, 5, "no 3") == []  # half of them
    (alert,) = fails(stage, 1, "no 4")
    assert alert == "alert run-alert-1: 6 of 11 attempts failed for one reason: no 4"
    assert fails(stage, 3, "no 5") == []  # once
    stage = Stage()
    assert fails(stage, 9, "") == []
    assert fails(stage, 1, "") == ["alert run-alert-1: 10 of 10 attempts failed for one reason: no reason was given"]


def test_an_attempt_is_judged_against_what_it_was_built_on_too() -> None:
    stage = Stage(2)
    stage.at(2, stage.submission("ben", 0.0))
    stage.at(2, stage.taken(1, built_on=Scored(9, 5.0)))
    stage.at(2, stage.checked_out(1))
    stage.at(3, stage.graded(1, 4.0))
    assert (stage.published().verdict, stage.published().against) == (Verdict.WORSE, 9)
