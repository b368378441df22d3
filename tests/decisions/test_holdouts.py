"""Grades on the hold-out, as transcripts: what is graded on it and when, and that nothing else is decided by it."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage, on_request

from attempts.noise import NoiseSetting
from attempts.standing import Scoring
from coral.fleet import events as on
from coral.fleet.actions import Publish
from coral.fleet.policy import KILL_AGAIN_SECONDS, MAX_KILLS, MAX_LOST_GRADES, MAX_START_RETRIES, START_RETRY_SECONDS
from coral.fleet.process_key import grade_in, holdout_key, of_grade
from coral.fleet.reasons import RunEndKind
from coral.fleet.run_state import AttemptStep, HoldoutScore

HELD_OUT = replace(QUIET_RULES, holdout_timeout=60.0, slots=1)
SEED = holdout_key(0)


def scores(stage: Stage) -> dict[int, float | None]:
    return {number: held.score for number, held in stage.fleet.holdouts.items()}


def begun(rules: object = HELD_OUT, agents: int = 1) -> Stage:
    """A fleet whose seed has its score on the hold-out."""
    stage = Stage(agents, rules)  # type: ignore[arg-type]
    stage.at(2, stage.graded(SEED, 0.5))
    return stage


def test_a_grade_on_the_hold_out_has_a_process_key_of_its_own() -> None:
    keys = [holdout_key(number) for number in (0, 1, 17)]
    assert keys == [-1, -2, -18]
    assert [holdout_key(key) for key in keys] == [0, 1, 17]
    assert grade_in(of_grade(-18)) == -18


def test_the_seed_and_each_new_best_are_graded_on_the_hold_out_in_the_order_in_which_they_came() -> None:
    stage = Stage(2, HELD_OUT)
    assert stage.opening[-1] == "grade #-1/1: commit seed as holdout"
    stage.in_grading(2, "ann", "ben", "ann")
    assert stage.at(3, stage.graded(SEED, 0.5)) == [
        "show the hold-out after #-1",
        "hold-out: #0 was tried",
        "grade #1/1: commit 1",
    ]
    assert stage.at(4, stage.graded(1, 1.0))[:2] == ["publish #1 new best 1", "grade #2/1: commit 2"]
    stage.at(5, stage.graded(2, 0.9))
    assert stage.at(6, stage.graded(3, 2.0)) == ["publish #3 new best 2", "grade #-2/1: commit 1 as holdout"]
    assert stage.at(7, stage.graded(-2, 0.4))[2:] == ["grade #-4/1: commit 3 as holdout"]
    stage.at(8, stage.graded(-4, 0.6))
    assert scores(stage) == {0: 0.5, 1: 0.4, 3: 0.6}
    assert stage.fleet.holdouts[3] == HoldoutScore(number=3, score=0.6, seconds=2.0)


def test_a_grade_on_the_hold_out_is_no_attempt() -> None:
    stage = begun(agents=2)
    stage.tried(3, "ann", 1.0)
    before = stage.fleet
    said = stage.at(4, stage.graded(-2, 99.0))
    assert said == ["show the hold-out after #-2", "hold-out: #1 was tried"]
    assert not any(isinstance(action, Publish) for action in stage.actions)
    assert replace(stage.fleet, holdouts=before.holdouts, pending=before.pending) == before
    assert stage.tried(5, "ben", 2.0)[0] == "publish #2 new best 2"


def test_without_a_hold_out_nothing_is_graded_on_it() -> None:
    stage = Stage(1, QUIET_RULES)
    stage.tried(2, "ann", 1.0)
    assert stage.fleet.pending == {}


def test_a_seed_without_a_score_on_the_hold_out_is_an_alert_and_an_attempt_without_one_is_not() -> None:
    stage = Stage(1, HELD_OUT)
    assert stage.at(2, stage.graded(SEED, reason="no data")) == [
        "show the hold-out after #-1",
        "hold-out: #0 was tried",
        "alert run-alert-1: the hold-out cannot grade the seed: see private/holdout.json",
    ]
    stage.tried(3, "ann", 1.0)
    said = stage.at(4, stage.graded(-2, outcome=on.Outcome.CRASHED))
    assert said == ["show the hold-out after #-2", "hold-out: #1 was tried"]
    assert [held.reason for held in stage.fleet.holdouts.values()] == ["no data", "the grader crashed"]
    assert [held.seconds for held in stage.fleet.holdouts.values()] == [2.0, 2.0]


def test_a_grade_on_the_hold_out_that_takes_too_long_is_ended_and_has_no_score() -> None:
    stage = Stage(1, HELD_OUT)
    stage.at(0, stage.checked_out(SEED))
    assert stage.until(60) == ["60 terminate #-1/1"]
    stage.at(61, stage.graded(SEED, outcome=on.Outcome.CRASHED))
    assert stage.fleet.holdouts[0] == HoldoutScore(
        number=0, reason="the grader took longer than 60 seconds", seconds=2.0
    )


def test_what_cannot_be_started_or_killed_is_given_up_on_the_hold_out() -> None:
    stage = Stage(1, HELD_OUT)
    for _ in range(MAX_START_RETRIES):
        stage.at(stage.clock, stage.not_started("#-1"))
        stage.until(stage.clock + START_RETRY_SECONDS)
    stage.at(stage.clock, stage.not_started("#-1"))
    reason = "the grader could not be started: no such program"
    assert stage.fleet.holdouts[0] == HoldoutScore(number=0, reason=reason)
    stage = Stage(1, HELD_OUT)
    stage.at(1, stage.checked_out(SEED))
    stage.at(1, stage.lingered("#-1"))
    stage.until(1 + 2**MAX_KILLS * KILL_AGAIN_SECONDS)
    assert stage.fleet.holdouts[0].reason == "processes that its grade started could not be killed"


def test_a_grade_on_the_hold_out_that_nobody_saw_end_is_made_again() -> None:
    stage = Stage(1, HELD_OUT)
    lost = stage.graded(SEED, outcome=on.Outcome.LOST)
    assert stage.at(2, lost) == ["grade #-1/2: commit seed as holdout"]


def test_on_a_full_disk_it_is_tried_again_a_few_times() -> None:
    stage = Stage(1, HELD_OUT)
    for place in range(MAX_LOST_GRADES + 1):
        stage.at(2 + place, on.DiskChecked(problem="full"), stage.graded(SEED, outcome=on.Outcome.CRASHED))
        stage.at(2 + place, on.DiskChecked(problem=""))
    assert stage.fleet.holdouts[0].reason == "it cannot be graded either: full"


def ended(rules: object = HELD_OUT) -> Stage:
    """A run whose attempts are used up, with a best that is not graded on the hold-out yet."""
    stage = begun(replace(rules, budget_attempts=1))  # type: ignore[type-var]
    stage.tried(3, "ann", 1.0)
    return stage


def test_the_end_of_a_budget_waits_for_the_hold_out() -> None:
    stage = ended()
    assert stage.fleet.run.stopping is not None
    assert stage.fleet.run.stopping.kind is RunEndKind.BUDGET
    assert stage.at(4, stage.exited("ann")) == ["exited ann: launch 1 ended: clean"]
    assert stage.at(5, stage.checked_out(-2)) == ["start the grader of #-2/1 as holdout"]
    assert stage.at(6, stage.graded(-2, 0.7))[-1] == "finish: budget (1 attempts)"
    assert scores(stage) == {0: 0.5, 1: 0.7}


def test_an_attempt_that_is_being_checked_out_then_is_not_graded() -> None:
    stage = begun(replace(HELD_OUT, budget_attempts=1, slots=2), agents=2)
    stage.in_grading(3, "ann")
    stage.at(4, stage.graded(1, 1.0))
    assert stage.fleet.run.stopping is not None
    stage.at(5, *(stage.exited(name) for name in stage.names))
    assert stage.at(6, stage.checked_out(-2)) == ["start the grader of #-2/1 as holdout"]


def test_at_the_end_an_unproven_lead_is_graded_on_it_too() -> None:
    noisy = replace(HELD_OUT, scoring=Scoring(noise=NoiseSetting(deviation=1.0)), confirm_share=0.0)
    stage = ended(noisy)
    assert stage.fleet.run.best == 0
    assert stage.pending(-2).holdout_of == 1


@pytest.mark.parametrize("hurried", [True, False])
def test_somebody_who_stops_the_run_waits_for_no_grade_on_the_hold_out(hurried: bool) -> None:
    if hurried:  # at its end
        stage = ended()
        stage.at(4, stage.exited("ann"), stage.checked_out(-2))
        assert "terminate #-2/1" in stage.stop(5)
    else:
        stage = begun()
        stage.tried(3, "ann", 1.0)
        stage.at(4, stage.checked_out(-2))
        assert "terminate #-2/1" in stage.stop(5)
        stage.at(5, stage.exited("ann", on.Ending.INTERRUPTED))
    said = stage.at(6, stage.graded(-2, outcome=on.Outcome.CRASHED))
    assert said[-1].startswith("finish: ")
    assert stage.pending(-2).step is AttemptStep.QUEUED
    # A resume makes up for it.
    stage.at(7, on.Resumed())
    assert stage.pending(-2).step is AttemptStep.GRADING


@pytest.mark.parametrize("problem", [on.DiskChecked(problem="full"), on.ClusterChecked(problem="no head")])
def test_a_run_at_its_end_waits_for_no_hold_out_that_cannot_be_graded(problem: on.Event) -> None:
    stage = ended()
    stage.at(4, stage.exited("ann"), stage.graded(-2, outcome=on.Outcome.LOST))
    assert stage.at(5, problem)[-1:] != ["finish: budget (1 attempts)"]
    said = stage.at(6, stage.graded(-2, outcome=on.Outcome.LOST))
    assert said[-1] == "finish: budget (1 attempts)"


def test_a_resume_shows_what_is_known_and_goes_on() -> None:
    stage = begun()
    stage.tried(3, "ann", 1.0)
    stage.stop(4, "enough")
    stage.at(4, stage.exited("ann"), stage.graded(-2, outcome=on.Outcome.LOST))
    said = stage.at(5, on.Resumed())
    assert "show the hold-out" in said
    assert "grade #-2/2: commit 1 as holdout" in said
    assert stage.fleet.run.stopping is None
    assert on_request() != stage.fleet.run.finished
