"""A task that changed in the middle of a run, as transcripts: what begins anew, what goes on, what agents are told."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECT, Stage, attempt_zero, rules_with

from attempts.failures import FailureGroup
from attempts.noise import NoiseSetting
from attempts.record import Kind, Verdict
from attempts.standing import Scored, Scoring
from coral.fleet import events as on
from coral.fleet.actions import Publish
from coral.fleet.attempts.settlement import ANOTHER_EPOCH
from coral.fleet.process_key import holdout_key
from coral.fleet.rules import Rules
from coral.fleet.run_state import AttemptStep
from heartbeats.heartbeat import Heartbeat, Scope
from heartbeats.trigger import Every, Stagnant


def changed(score: float = 5.0, epoch: int = 2) -> on.TaskChanged:
    baseline = replace(attempt_zero(score), epoch=epoch, seconds=3.0, submitted_at="graded")
    return on.TaskChanged(baseline=baseline)


def reload(stage: Stage, clock: float, event: on.TaskChanged | None = None) -> list[str]:
    """The agents have ended, and a resume takes the changed task in."""
    return stage.at(clock, on.Resumed(), event or changed())


def stopped(stage: Stage, clock: float) -> None:
    stage.stop(clock)
    stage.at(clock, *(stage.exited(name, on.Ending.INTERRUPTED) for name in stage.names))


def test_the_seed_is_published_anew_and_is_the_best_whatever_was_scored_before() -> None:
    stage = Stage()
    stage.tried(2, "ann", 9.0)
    stopped(stage, 3)
    said = reload(stage, 4)
    assert "publish #2 new best 5" in said
    (record,) = [action.attempt for action in stage.actions if isinstance(action, Publish)]
    assert (record.kind, record.epoch, record.order, record.published_at) == (Kind.BASELINE, 2, 2, "wall 4")
    assert (stage.fleet.run.best, stage.fleet.run.epoch, list(stage.fleet.measured)) == (2, 2, [2])
    assert stage.fleet.run.grade_seconds == 3.0
    stage.at(5, on.Published(number=2))
    assert stage.fleet.pending == {}
    assert stage.tried(6, "ann", 6.0)[0] == "publish #3 new best 6"
    assert stage.fleet.run.order == 3
    assert stage.fleet.run.progress.graded == 2


def test_its_record_is_written_again_until_it_is_known_to_be_written() -> None:
    stage = Stage()
    stopped(stage, 2)
    reload(stage, 3)
    stopped(stage, 4)
    assert "publish #1 new best 5" in stage.at(5, on.Resumed())


def test_every_agent_is_told_with_its_next_launch() -> None:
    stage = Stage(2)
    stopped(stage, 2)
    said = reload(stage, 3)
    assert [line for line in said if line.startswith("spawn")] == [
        "spawn ann/2: resumed, session of ann, told 0, owed changed:h1",
        "spawn ben/2: resumed, session of ben, told 0, owed changed:h2",
    ]


def test_an_agent_that_went_on_is_interrupted_for_it() -> None:
    stage = Stage(2)
    assert {"interrupt ann/1", "interrupt ben/1"} <= set(reload(stage, 3))


def test_the_same_change_counts_once() -> None:
    stage = Stage()
    stopped(stage, 2)
    reload(stage, 3)
    before = stage.fleet.run
    stopped(stage, 4)
    said = reload(stage, 5)
    assert stage.fleet.run.epoch == before.epoch
    assert stage.fleet.run.next_number == before.next_number
    assert not any("publish #2" in line for line in said)


def test_what_is_being_graded_is_graded_anew_under_the_new_task() -> None:
    stage = Stage(2)
    stage.in_grading(2, "ann", "ben")
    stage.at(2, stage.checked_out(1), stage.checked_out(2))
    said = reload(stage, 3)
    assert {"terminate #1/1", "terminate #2/1"} <= set(said)
    # The old grader may have ended before it got the signal: its score is of the old task.
    assert stage.at(4, stage.graded(1, 99.0)) == ["grade #1/2: commit 1"]
    stage.at(4, stage.graded(2, outcome=on.Outcome.CRASHED))
    stage.at(5, stage.graded(1, 6.0))
    assert (stage.published().epoch, stage.published().verdict) == (2, Verdict.NEW_BEST)


def test_what_waits_for_its_grade_is_compared_with_nothing_from_before() -> None:
    stage = Stage(2, replace(QUIET_RULES, slots=1, scoring=Scoring(noise=NoiseSetting(deviation=0.1)), confirm_share=0))
    stage.tried(2, "ann", 9.0)
    stage.at(3, stage.submission("ben"), stage.submission("ben"))
    stage.at(3, stage.taken(2, built_on=Scored(1, 9.0)), stage.taken(3, duplicate=Scored(1, 9.0)))
    reload(stage, 4)
    stage.at(5, stage.graded(2, outcome=on.Outcome.LOST))
    stage.at(6, stage.graded(2, 6.0))
    assert (stage.published().verdict, stage.published().against) == (Verdict.OWN_BEST, 4)
    stage.at(7, stage.graded(3, 6.0))
    assert stage.published().of is None


def test_a_crash_of_the_old_grader_is_forgotten() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, outcome=on.Outcome.CRASHED, reason="no disk"))
    reload(stage, 4)
    assert stage.at(5, stage.graded(1, 99.0)) == ["grade #1/3: commit 1"]
    stage.at(6, stage.graded(1, 6.0))
    assert stage.published().verdict is Verdict.NEW_BEST


NOISY = replace(QUIET_RULES, scoring=Scoring(noise=NoiseSetting(deviation=0.1)), slots=1)


def test_a_confirmation_of_an_earlier_epoch_is_over() -> None:
    stage = Stage(2, NOISY)
    stage.in_grading(2, "ann")
    stage.at(3, stage.graded(1, 1.0))
    assert stage.pending(2).step is AttemptStep.GRADING
    reload(stage, 4)
    said = stage.at(5, stage.graded(2, 0.0))
    assert said[0] == f"publish #2 void ({ANOTHER_EPOCH})"
    assert stage.fleet.run.half is None


def test_a_confirmation_that_waits_is_over_at_once() -> None:
    stage = Stage(2, NOISY)
    stage.in_grading(2, "ann", "ben")
    stage.at(3, on.DiskChecked(problem="full"), stage.graded(1, 1.0))
    assert stage.pending(3).step is AttemptStep.QUEUED
    assert f"publish #3 void ({ANOTHER_EPOCH})" in reload(stage, 4)


@pytest.mark.parametrize("runs", [True, False])
def test_so_is_a_grade_on_the_hold_out_and_the_new_seed_gets_one(runs: bool) -> None:
    stage = Stage(1, replace(QUIET_RULES, holdout_timeout=60.0, slots=1))
    if not runs:
        stage.in_grading(2, "ann")
        stage.at(2, stage.graded(-1, 0.5))
        stage.at(3, on.DiskChecked(problem="full"), stage.graded(1, 1.0))
        assert stage.pending(-2).step is AttemptStep.QUEUED
    key = -1 if runs else -2
    reload(stage, 4)
    if runs:
        assert stage.at(5, stage.graded(key, 0.5)) == [
            "show the hold-out after #-1",
            "grade #-2/1: commit seed as holdout",
        ]
    seed = stage.fleet.run.best or 0
    assert [number for number in stage.fleet.pending if number < 0] == [holdout_key(seed)]
    stage.at(6, stage.graded(holdout_key(seed), 0.1))
    assert stage.fleet.holdouts[seed].score == 0.1


def test_stagnation_begins_anew_and_what_was_owed_for_it_is_withdrawn() -> None:
    redirect = Heartbeat(name="redirect", trigger=Stagnant(2))
    stuck = Heartbeat(name="stuck", trigger=Stagnant(2), scope=Scope.FLEET, prompt="look up")
    stage = Stage(1, rules_with(redirect, stuck))
    stage.tried(2, "ann", -1.0)
    stage.tried(3, "ann", -1.0)
    assert stage.owed("ann") == ["redirect h1", "stuck h2"]
    stage.stop(4)
    stage.at(4, stage.exited("ann", on.Ending.INTERRUPTED))
    said = reload(stage, 5)
    assert "withdrawn ann: redirect (h1): the task has changed" in said
    assert "withdrawn ann: stuck (h2): the task has changed" in said
    assert stage.owed("ann") == ["changed h3"]
    assert (stage["ann"].progress.stagnant, stage.fleet.run.progress.stagnant) == (0, 0)
    stage.at(6, stage.heard("ann"))
    stage.tried(7, "ann", 4.0)
    assert stage.owed("ann") == []
    stage.tried(8, "ann", 4.0)
    assert stage.owed("ann") == ["redirect h4", "stuck h5"]


def test_an_unassigned_message_about_stagnation_is_withdrawn_too() -> None:
    stuck = Heartbeat(name="stuck", trigger=Stagnant(1), scope=Scope.FLEET, prompt="look up")
    every = Heartbeat(name="each", trigger=Every(1), scope=Scope.FLEET, prompt="note it")
    stage = Stage(2, rules_with(stuck, every))
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("ann", on.Ending.TERMINAL))
    stage.at(4, stage.graded(1, -1.0))
    assert [message.name for message in stage.fleet.run.unassigned_messages] == ["stuck", "each"]
    said = reload(stage, 5)
    assert "withdrawn: stuck (h1): the task has changed" in said
    assert [message.name for message in stage.fleet.run.unassigned_messages] == ["each"]


def test_voids_and_the_reasons_of_failures_are_counted_anew() -> None:
    stage = Stage()
    stage.tried(2, "ann", None)
    for clock in (3, 4):
        (number,) = stage.in_grading(clock, "ann")
        stage.voided(clock, number)
    assert (stage.fleet.run.failures, stage.fleet.run.voids_in_a_row) == ({"wrong": FailureGroup(1, "wrong")}, 2)
    stopped(stage, 5)
    reload(stage, 6)
    assert (stage.fleet.run.failures, stage.fleet.run.voids_in_a_row) == ({}, 0)
    assert stage.fleet.run.failed == 1


def test_one_reason_is_an_alert_again_and_by_the_attempts_of_its_epoch() -> None:
    stage = Stage()
    said = [line for clock in range(2, 13) for line in stage.tried(clock, "ann", None)]
    assert len([line for line in said if line.startswith("alert")]) == 1
    stopped(stage, 20)
    reload(stage, 21)
    said = [line for clock in range(22, 40) for line in stage.tried(clock, "ann", 1.0 if clock < 25 else None)]
    alerts = [line.partition(": ")[2] for line in said if line.startswith("alert")]
    assert alerts == ["7 of 10 attempts failed for one reason: wrong"]


def test_changed_heartbeats_come_in_force_with_or_without_an_epoch() -> None:
    stage = Stage(1, rules_with(REFLECT))
    stopped(stage, 2)
    gather = Heartbeat(name="gather", trigger=Every(3), scope=Scope.FLEET, prompt="gather")
    stage.rules = rules_with(REFLECT, Heartbeat(name="tidy", trigger=Every(3), prompt="tidy up"), gather)
    said = stage.at(3, on.Resumed(), on.TaskChanged(heartbeats=True))
    assert list(stage.in_force("ann")) == ["reflect", "tidy"]
    assert list(stage.in_force("fleet")) == ["gather"]
    assert {"show ann", "show fleet"} <= set(said)
    assert (stage.fleet.run.epoch, stage.owed("ann")) == (1, [])
    assert stage.at(4, on.TaskChanged()) == []


HELD_OUT = replace(QUIET_RULES, holdout_timeout=60.0, slots=2)


def test_another_hold_out_forgets_the_scores_on_the_one_before_and_grades_the_seed_and_the_best_on_it() -> None:
    stage = Stage(1, HELD_OUT)
    stage.at(2, stage.graded(-1, 0.5))
    for clock, score in ((3, 1.0), (4, 2.0)):
        stage.tried(clock, "ann", score)
    stage.at(5, stage.graded(-2, 0.6))
    assert list(stage.fleet.holdouts) == [0, 1]
    stage.at(5, stage.checked_out(-3))
    (number,) = stage.in_grading(5, "ann")
    stage.at(5, stage.checked_out(number))
    stage.at(6, on.Resumed(), on.TaskChanged())
    assert list(stage.fleet.holdouts) == [0, 1]
    said = stage.at(6, on.Resumed(), on.TaskChanged(holdout=True))
    assert stage.fleet.holdouts == {}
    assert [line for line in said if line.startswith("terminate")] == ["terminate #-3/1"]
    said += stage.at(6, stage.graded(number, 0.0))
    assert "grade #-1/1: commit seed as holdout" in said
    assert stage.at(7, stage.graded(-3, 9.0)) == ["grade #-3/2: commit 2 as holdout"]
    stage.at(8, stage.graded(-3, 0.8), stage.graded(-1, 0.4))
    assert {number: held.score for number, held in stage.fleet.holdouts.items()} == {2: 0.8, 0: 0.4}


def test_a_hold_out_that_is_gone_is_graded_on_no_more() -> None:
    stage = Stage(1, HELD_OUT)
    stage.at(1, stage.checked_out(-1))
    stage.rules = QUIET_RULES
    stage.at(2, on.Resumed(), on.TaskChanged(holdout=True))
    assert stage.at(3, stage.graded(-1, 0.5)) == ["show the hold-out after #-1"]
    assert (stage.fleet.pending, stage.fleet.holdouts) == ({}, {})


def test_a_hold_out_that_waits_in_a_queue_gives_way_to_the_new_one() -> None:
    stage = Stage(2, replace(HELD_OUT, slots=1))
    stage.in_grading(2, "ann", "ben")
    stage.at(3, stage.graded(-1, 0.5))
    stage.at(4, stage.graded(1, 1.0))
    assert stage.pending(-2).step is AttemptStep.QUEUED
    stage.at(5, on.Resumed(), on.TaskChanged(holdout=True))
    assert [number for number in stage.fleet.pending if number < 0] == [-1, -2]


def in_the_second_epoch(rules: Rules) -> Stage:
    """A fleet in its second epoch, with a lead that is being measured beside the best."""
    stage = Stage(1, rules)
    stopped(stage, 2)
    reload(stage, 3, changed(0.0))
    stage.at(4, stage.heard("ann"))
    return stage


def test_the_supervisors_own_grades_of_the_present_epoch_go_on_after_a_stop() -> None:
    stage = in_the_second_epoch(replace(NOISY, holdout_timeout=60.0, slots=3))
    stage.tried(5, "ann", 9.0)
    seed = holdout_key(stage.fleet.run.best or 0)
    assert stage.pending(3).confirmation is not None
    stage.stop(6)
    stage.at(6, stage.exited("ann", on.Ending.INTERRUPTED))
    stage.at(7, stage.graded(3, outcome=on.Outcome.CRASHED), stage.graded(seed, outcome=on.Outcome.CRASHED))
    said = stage.at(8, on.Resumed())
    assert "grade #3/2: commit seed as confirm" in said
    assert f"grade #{seed}/2: commit seed as holdout" in said
