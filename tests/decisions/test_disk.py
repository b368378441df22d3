"""A disk that nothing can be written to, as transcripts: nothing is begun, nobody is blamed, all goes on afterwards."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECTING, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.events import Ending, Outcome
from coral.fleet.run_state import AttemptStep

FULL = on.DiskChecked(problem="the disk has 0.0 MB left")
EASED = on.DiskChecked(problem="")
TOLD = "alert run-alert-1: nothing new is begun, until the disk can be used again: the disk has 0.0 MB left"
GOES_ON = "alert run-alert-2: the disk can be used again; the run continues"


def test_it_is_told_once_and_so_is_its_end_and_what_is_handed_in_stays_in_the_inbox() -> None:
    stage = Stage()
    assert stage.at(2, EASED) == []
    assert stage.at(3, FULL) == [TOLD]
    assert stage.at(4, on.DiskChecked(problem="the disk has 0.1 MB left")) == []
    assert stage.fleet.run.disk_problem == "the disk has 0.1 MB left"
    assert stage.at(5, EASED) == [GOES_ON]
    assert stage.at(6, EASED) == []
    stage = Stage()
    submission = stage.submission("ann")
    assert stage.at(2, FULL, submission) == [TOLD]
    assert stage.at(3, EASED, submission) == [GOES_ON, "take in #1: commit 1 of ann", "accept 1 of ann as #1"]


def test_what_could_not_be_taken_in_is_tried_again_as_long_as_it_takes() -> None:
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    lost = on.IntakeFailed(number=1, reason="No space left on device", our_fault=True)
    assert stage.at(3, FULL, lost, *[lost] * 9) == [TOLD]
    assert stage.until(99) == []
    assert stage.pending(1).failed_intakes == 0
    assert stage.at(99, EASED) == [GOES_ON, "take in #1: commit 1 of ann"]
    assert stage.at(100, stage.taken(1)) == ["grade #1/1: commit 1"]
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    said = stage.at(3, FULL, on.IntakeFailed(number=1, reason="no commit", our_fault=False))
    assert said == [TOLD, "publish #1 failed (no commit)"]


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.FAILED, None])
def test_a_grade_that_failed_meanwhile_or_could_not_start_is_done_again(outcome: Outcome | None) -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    why = "No space left"
    failed = stage.graded(1, outcome=outcome, reason=why) if outcome else stage.not_started("#1", why)
    assert stage.at(3, FULL, failed) == [TOLD, "tidy #1/1 whole"]
    assert (stage.pending(1).step, stage.pending(1).suspicion) == (AttemptStep.QUEUED, "")
    assert stage.at(4, EASED) == [GOES_ON, "grade #1/2: commit 1"]


def lose(stage: Stage, clock: float, number: int) -> list[str]:
    """A grade that ends on a full disk, and what is said when there is space again."""
    launch = stage.pending(number).launch
    said = stage.at(clock, FULL, stage.graded(number, outcome=Outcome.CRASHED, reason="No space left"))
    assert said[1:] == [f"tidy #{number}/{launch} whole"]
    return stage.at(clock + 1, EASED)[1:]


def test_who_fills_the_disk_at_every_grade_is_judged_by_the_seed_and_void_where_that_is_lost_as_often() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    said = [lose(stage, clock, 1) for clock in (10, 20, 30, 40)]
    assert said == [[f"grade #1/{launch}: commit 1"] for launch in (2, 3, 4)] + [["grade #1/5: commit seed as a probe"]]
    said = stage.at(50, stage.graded(1, 5.0))
    reason = "each of 4 grades of it ended on a disk without room: the disk has 0.0 MB left"
    assert said == [f"publish #1 failed ({reason})"]
    stage = Stage()
    stage.in_grading(2, "ann")
    said = [lose(stage, clock, 1) for clock in (10, 20, 30, 40, 50, 60, 70)]
    assert said[3:] == [[f"grade #1/{launch}: commit seed as a probe"] for launch in (5, 6, 7, 8)]
    said = stage.at(80, FULL, stage.graded(1, outcome=Outcome.FAILED))
    reason = "the seed cannot be graded either: the disk has 0.0 MB left"
    assert said[1:] == ["tidy #1/8 whole", f"publish #1 void ({reason})"]


def test_grades_of_which_nobody_saw_the_end_do_not_count_among_those() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    for clock in range(3, 13):
        said = stage.at(clock, stage.graded(1, outcome=Outcome.LOST))
        assert said == [f"grade #1/{clock - 1}: commit 1"]
    assert stage.pending(1).lost_grades == 0


def test_a_stop_on_a_full_disk_leaves_nothing_of_a_grade_and_counts_it_for_nothing() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    stage.at(3, FULL)
    stage.stop(3)
    lost = stage.graded(1, outcome=Outcome.CRASHED)
    assert stage.at(4, lost, stage.exited("ann")) == [
        "tidy #1/1 whole",
        "exited ann: launch 1 ended: clean",
        "finish: request (enough)",
    ]
    assert (stage.pending(1).step, stage.pending(1).lost_grades) == (AttemptStep.QUEUED, 0)


def test_a_score_counts_whenever_it_comes_and_nothing_else_is_graded_before_it_is_over() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=1))
    stage.in_grading(2, "ann", "ann")
    assert stage.at(3, FULL, stage.graded(1, 5.0)) == [TOLD, "tidy #1/1", "publish #1 new best 5"]
    assert stage.at(4, EASED) == [GOES_ON, "grade #2/1: commit 2"]


@pytest.mark.parametrize("ends", [True, False])
def test_an_agent_that_ended_badly_or_could_not_start_is_not_said_to_crash(ends: bool) -> None:
    stage = Stage()
    event = stage.exited("ann", Ending.CRASHED) if ends else stage.not_started("ann", "No space left")
    assert stage.at(2, FULL, event)[0] == TOLD
    assert (stage["ann"].phase, stage["ann"].crashes, stage.breaker.crashes) == (Phase.WAITING, 0, ())
    assert stage.until(99) == []
    assert stage.at(99, EASED)[1:] == ["spawn ann/2: resumed, session of ann, told 0"]


def test_nobody_is_interrupted_who_could_not_be_started_again() -> None:
    stage = Stage(rules=REFLECTING)
    stage.in_grading(2, "ann")
    stage.at(3, FULL, stage.graded(1, 5.0))
    assert stage.until(99) == []
    assert stage["ann"].pending_messages
    assert stage.at(99, EASED) == [GOES_ON, "interrupt ann/1"]


def test_a_stop_stops_all_the_same_and_what_its_gits_were_at_is_taken_in_by_the_next() -> None:
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    stage.at(3, FULL)
    assert stage.stop(4) == ["answer operator/1: yes, stopping", "interrupt ann/1"]
    lost = on.IntakeFailed(number=1, reason="git was killed", our_fault=True)
    assert stage.at(5, lost, stage.exited("ann"))[-1] == "finish: request (enough)"
    # Whether it lacks anything still, a new supervisor sees for itself.
    assert stage.at(6, on.Resumed())[1:3] == ["accept 1 of ann as #1", "take in #1: commit 1 of ann"]
    assert (stage.pending(1).deadline, stage.fleet.run.disk_problem) == (None, "")
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    stage.stop(4)
    assert stage.at(5, *[on.IntakeFailed(number=1, reason="git was killed", our_fault=True)] * 9) == []
    assert stage.at(6, stage.exited("ann"))[-1] == "finish: request (enough)"
    assert stage.at(7, on.Resumed())[:2] == ["accept 1 of ann as #1", "take in #1: commit 1 of ann"]


def test_whoever_ends_meanwhile_waits_for_nothing_else() -> None:
    stage = Stage(rules=replace(QUIET_RULES, max_defer=50.0))
    stage.at(2, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(52)[-1] == "52 interrupt ann/1"
    stage.at(53, FULL)
    stage.at(54, stage.exited("ann", Ending.INTERRUPTED))
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.WAITING, 54)
