"""The end of a run and its resumption, as transcripts: budgets, stop, what is kept, what is done again."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.events import Ending, Outcome
from coral.fleet.state import Phase, Step
from heartbeats.heartbeat import Delivery, Heartbeat, Scope
from heartbeats.trigger import Elapsed, Every

REFLECT = Heartbeat(name="reflect", trigger=Every(1), protected=True)
REFLECTING = replace(QUIET_RULES, heartbeats=(REFLECT,))


def stop(stage: Stage, clock: float, reason: str = "enough") -> list[str]:
    return stage.at(clock, stage.asks("operator", on.Stop(reason=reason)))


# --- stop ---------------------------------------------------------------------------------------------------------


def test_stop_interrupts_who_runs_starts_nobody_and_finishes_when_all_are_gone() -> None:
    stage = Stage(4, REFLECTING)
    stage.at(2, stage.exited("ben", Ending.CRASHED), stage.exited("cid", Ending.LIMIT, until=50.0))
    assert stop(stage, 3) == ["answer operator/1: yes, stopping", "interrupt ann/1", "interrupt dot/1"]
    assert (stage["ann"].why, stage["ann"].deadline) == ("stop", 13)
    assert (stage["ben"].phase, stage["ben"].deadline, stage["ben"].why) == (Phase.WAITING, None, "stopped")
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED)) == ["exited ann: launch 1 ended: interrupted"]
    assert stage.until(13) == ["13 terminate dot/1"]
    assert stage.at(14, stage.exited("dot", Ending.CRASHED)) == [
        "exited dot: launch 1 ended: crashed",
        "finish: enough",
    ]
    assert stage.fleet.run.finished == "enough"
    assert [stage[name].phase for name in stage.names] == [Phase.WAITING, Phase.WAITING, Phase.PARKED, Phase.WAITING]
    assert [stage[name].deadline for name in stage.names] == [None, None, 52, None]
    assert stage.until(1000) == []


def test_stopping_twice_keeps_the_first_reason() -> None:
    stage = Stage()
    stop(stage, 2, "")
    assert stop(stage, 3, "again") == ["answer operator/2: yes, stopping"]
    assert stage.at(4, stage.exited("ann"))[-1] == "finish: stopped by the operator"


def test_a_fleet_at_rest_finishes_at_once() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=50.0))
    assert stop(stage, 3) == ["answer operator/1: yes, stopping", "finish: enough"]


def test_what_is_interrupted_for_a_heartbeat_when_the_stop_comes_stays_owed() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stop(stage, 3) == ["answer operator/1: yes, stopping"]
    assert stage["ann"].deadline == 12
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED))[1:] == ["finish: enough"]
    assert stage.at(5, on.Resumed()) == [
        "show fleet",
        "show ann",
        "spawn ann/2: resumed, session of ann, told 0, owed reflect:h1",
    ]


def test_a_stop_with_the_end_of_a_launch_starts_no_other() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    (asked, *events) = [stage.asks("operator", on.Stop(reason="enough")), stage.exited("ann")]
    assert stage.at(3, *events, asked)[:2] == [
        "exited ann: launch 1 ended: clean",
        "answer operator/1: yes, stopping",
    ]
    assert stage["ann"].phase is Phase.WAITING
    assert stage["ann"].deadline is None


def test_an_unkillable_agent_is_named_and_holds_up_no_stop() -> None:
    stage = Stage(2)
    stop(stage, 2)
    stage.at(3, stage.exited("ben", Ending.INTERRUPTED))
    assert stage.until(100)[-3:] == [
        "25 kill ann/1",
        "27 alert run-alert-1 of ann: ann has retired: launch 1 cannot be killed",
        "27 finish: enough",
    ]


def test_an_unkillable_agent_that_ends_while_the_run_stops_waits_for_the_resume() -> None:
    stage = Stage(2)
    stage.tried(2, "ben", 1.0)
    stage.at(2, stage.lingered("ann"))
    stage.until(17)
    assert stage["ann"].phase is Phase.RETIRED
    stop(stage, 18)
    stage.at(19, stage.exited("ann", Ending.CRASHED))
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.WAITING, None)


def test_heartbeats_rest_while_a_run_stops() -> None:
    clock = Heartbeat(name="checkpoint", trigger=Elapsed(5))
    pulse = Heartbeat(name="pulse", trigger=Elapsed(5), scope=Scope.FLEET, prompt="tick")
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=(clock, pulse)))
    stop(stage, 2)
    assert stage.until(12) == ["12 terminate ann/1"]
    assert stage["ann"].owed == ()
    assert stage.fleet.run.orphans == ()


# --- attempts and the stop ----------------------------------------------------------------------------------------


def test_stop_keeps_attempts_in_hand_for_the_resume() -> None:
    stage = Stage(2, replace(REFLECTING, slots=1))
    stage.tried(2, "ann", 1.0)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=99.0), stage.exited("ben", Ending.LIMIT, until=99.0))
    stage.in_grading(3, "ann", "ann")
    stage.at(3, stage.submission("ben"))
    assert stop(stage, 4) == ["answer operator/1: yes, stopping", "terminate #2/1"]
    # A score that comes now is not waited for; another slot is not filled; a commit still comes in.
    assert stage.at(5, stage.graded(2, 9.0)) == []
    assert stage.at(6, stage.taken(4)) == ["finish: enough"]
    assert {number: each.step for number, each in stage.fleet.pending.items()} == {
        2: Step.QUEUED,
        3: Step.QUEUED,
        4: Step.QUEUED,
    }
    assert stage.at(7, on.Resumed()) == [
        "accept 2 of ann as #2",
        "accept 3 of ann as #3",
        "accept 4 of ben as #4",
        "show fleet",
        "show ann",
        "show ben",
        "grade #2/2: commit 2",
    ]
    # What was stopped once is judged like any other now.
    assert stage.at(8, stage.graded(2, 9.0))[:1] == ["publish #2 improved 9"]


def test_a_submission_during_the_stop_stays_in_the_inbox() -> None:
    stage = Stage()
    submission = stage.submission("ann")
    stop(stage, 2)
    assert stage.at(3, submission) == []
    stage.at(4, stage.exited("ann"))
    assert stage.at(5, on.Resumed(), submission)[2:] == [
        "take in #1: commit 1 of ann",
        "accept 1 of ann as #1",
        "spawn ann/2: resumed, session of ann, told 0",
    ]


def test_a_deaf_grader_is_killed_and_its_attempt_kept() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    assert stop(stage, 3)[1:] == ["terminate #1/1"]
    assert stage.until(8) == ["8 kill #1/1"]
    assert stage.at(9, stage.graded(1, outcome=Outcome.CRASHED)) == ["finish: enough"]
    assert stage.pending(1).step is Step.QUEUED
    assert stage.pending(1).suspicion == ""


def test_an_unkillable_grader_is_named_and_its_attempt_kept() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    stop(stage, 3)
    assert stage.until(100)[-2:] == [
        "18 alert run-alert-2: the grader of #1 cannot be killed; its slot is given up",
        "18 finish: enough",
    ]
    assert (stage.pending(1).step, stage.pending(1).deadline) == (Step.QUEUED, None)
    stage.at(20, on.Resumed())
    assert stage.until(400)[-7:-5] == ["325 kill #1/2", "327 kill #1/2"]


def test_a_grade_that_was_out_of_time_when_the_stop_came_is_graded_again() -> None:
    stage = Stage(rules=replace(QUIET_RULES, grade_timeout=10.0))
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stop(stage, 13) == ["answer operator/1: yes, stopping"]
    assert stage.at(14, stage.graded(1, outcome=Outcome.CRASHED)) == ["finish: enough"]
    stage.at(15, on.Resumed())
    assert stage.at(16, stage.graded(1, 1.0)) == ["publish #1 improved 1"]


def test_a_grader_that_was_not_started_because_of_the_stop_is_no_void() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    stop(stage, 3)
    assert stage.at(4, stage.not_started("#1")) == ["finish: enough"]
    assert stage.pending(1).step is Step.QUEUED


def test_what_cannot_be_published_holds_up_no_stop_and_is_published_by_the_resume() -> None:
    tip = Heartbeat(name="tip", trigger=Every(1), delivery=Delivery.INLINE, prompt="mind")
    stage = Stage(2, replace(QUIET_RULES, heartbeats=(REFLECT, tip)))
    stage.in_grading(2, "ann", wait=60)
    stage.at(3, stage.graded(1, 1.0))
    stop(stage, 4)
    stage.at(5, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.at(5, stage.exited("ben", Ending.INTERRUPTED))[-1] == "finish: enough"
    assert stage.at(6, on.Resumed())[:2] == [
        "accept 1 of ann as #1",
        "publish #1 improved 1, then reflect tip",
    ]
    assert stage.at(7, on.Published(number=1)) == []
    assert stage.fleet.pending == {}
    assert stage.fleet.run.order == 1


def test_what_was_printed_is_not_printed_again_by_a_resume() -> None:
    tip = Heartbeat(name="tip", trigger=Every(1), delivery=Delivery.INLINE, prompt="mind")
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=(tip,)))
    stage.in_grading(2, "ann", wait=60)
    assert stage.at(3, stage.graded(1, 1.0)) == ["publish #1 improved 1, printing tip:h1"]
    assert "publish #1 improved 1" in stage.at(4, on.Resumed())
    assert stage.until(33) == ["33 interrupt ann/1"]


# --- budgets ------------------------------------------------------------------------------------------------------


def test_the_budget_of_attempts_ends_the_run_when_the_last_is_graded() -> None:
    stage = Stage(2, replace(REFLECTING, budget_attempts=3))
    stage.tried(2, "ann", 1.0)
    stage.resumed("ann", 2)
    stage.in_grading(3, "ann", "ben")
    stage.at(4, stage.graded(2, reason="wrong"))
    stage.resumed("ann", 4)
    assert stage.at(5, stage.graded(3, 1.0)) == [
        "publish #3 improved 1",
        "interrupt ann/3",
        "interrupt ben/1",
    ]
    assert stage.fleet.run.stopping == "the budget of 3 attempts is used up"
    assert stage.at(6, stage.exited("ann"), stage.exited("ben"))[-1] == "finish: the budget of 3 attempts is used up"
    # A resume with the same budget starts nobody.
    assert stage.at(7, on.Resumed())[-1] == "finish: the budget of 3 attempts is used up"
    assert stage["ann"].launch == 3
    # With a larger one it goes on.
    stage.rules = replace(stage.rules, budget_attempts=4)
    assert stage.at(8, on.Resumed())[-1].startswith("spawn ben/2: resumed")


def test_void_attempts_cost_nothing() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_attempts=1))
    stage.in_grading(2, "ann")
    stage.at(3, stage.not_started("#1"))
    assert stage.fleet.run.stopping == ""
    stage.tried(4, "ann", 1.0)
    assert stage.fleet.run.stopping == "the budget of 1 attempts is used up"


def test_the_budget_of_hours_ends_the_run_to_the_second() -> None:
    stage = Stage(rules=replace(QUIET_RULES, budget_seconds=90.0))
    assert stage.until(89.9) == []
    assert stage.until(90) == ["90 interrupt ann/1"]
    assert stage.at(91, stage.exited("ann"))[-1] == "finish: the budget of 0.025 hours is used up"


@pytest.mark.parametrize(("score", "ends"), [(2.5, True), (2.6, True), (2.4999, False)])
def test_reaching_the_target_ends_the_run(score: float, ends: bool) -> None:
    stage = Stage(2, rules=replace(QUIET_RULES, target=2.5))
    said = stage.tried(2, "ann", score)
    assert said[1:] == (["interrupt ann/1", "interrupt ben/1"] if ends else [])
    assert stage.fleet.run.stopping == (f"the target of 2.5 is reached: {score:g} by #1" if ends else "")


def test_a_fleet_without_anybody_ends_when_nothing_is_left_to_grade() -> None:
    stage = Stage(2)
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("ann", Ending.TERMINAL, "a"), stage.exited("ben", Ending.TERMINAL, "b"))
    assert stage.fleet.run.stopping == ""
    assert stage.at(4, stage.graded(1, 1.0)) == ["publish #1 improved 1", "finish: every agent has retired"]


def test_a_submission_on_its_way_is_something_left_to_grade() -> None:
    stage = Stage()
    stage.at(2, stage.submission("ann"))
    assert "finish" not in stage.at(3, stage.exited("ann", Ending.TERMINAL, "a"))[-1]
    assert stage.at(4, on.NotTaken(number=1, reason="?", ours=False))[-1] == "finish: every agent has retired"


def test_an_attempt_given_up_at_the_last_moment_counts_for_the_budget_at_once() -> None:
    # The stop waited for the next event, and the interrupt with it.
    stage = Stage(rules=replace(REFLECTING, grade_timeout=10.0, budget_attempts=1))
    stage.in_grading(2, "ann", wait=600)
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.at(13, stage.graded(1, outcome=Outcome.CRASHED)) == [
        "publish #1 failed (the grader took longer than 10 seconds), then reflect",
        "interrupt ann/1",
    ]


def test_a_message_that_waits_at_an_eval_goes_out_when_its_grade_is_given_up() -> None:
    # Grades were given up after agents had been looked at: the interrupt waited for the next event.
    stage = Stage(rules=replace(QUIET_RULES, grade_timeout=10.0))
    stage.in_grading(2, "ann", wait=600)
    stage.at(3, stage.asks("operator", on.Tell(to="ann", text="hello")))
    assert stage.until(27)[-3:] == [
        "27 alert run-alert-1: the grader of #1 cannot be killed; its slot is given up",
        "27 publish #1 void (the grader could not be killed), then message",
        "27 interrupt ann/1",
    ]


# --- resume -------------------------------------------------------------------------------------------------------


def test_a_new_supervisor_leaves_who_runs_alone_and_does_again_what_may_not_have_been_done() -> None:
    stage = Stage(2, REFLECTING)
    stage.at(2, stage.submission("ann"))
    stage.in_grading(2, "ben")
    stage.in_grading(2, "ben", wait=60)
    stage.at(3, stage.graded(3, 1.0))
    assert stage.at(8, on.Resumed()) == [
        "interrupt ben/1",
        "accept 1 of ann as #1",
        "take in #1: commit 1 of ann again",
        "accept 2 of ben as #2",
        "accept 3 of ben as #3",
        "publish #3 improved 1, then reflect",
        "show fleet",
        "show ann",
        "show ben",
    ]
    assert stage["ann"].deadline == 1208
    assert (stage["ben"].deadline, stage["ben"].why) == (18, "heartbeat")
    # The grade that goes on keeps its deadline.
    assert stage.pending(2).deadline == 302


def test_what_died_with_the_supervisor_goes_on_at_once_with_all_that_is_owed() -> None:
    stage = Stage(2, REFLECTING)
    stage.tried(2, "ann", 1.0)
    lost = [stage.exited(name, Ending.LOST) for name in stage.names]
    assert [line for line in stage.at(8, on.Resumed(), *lost) if "show" not in line] == [
        "interrupt ann/1",
        "exited ann: launch 1 ended: lost",
        "exited ben: launch 1 ended: lost",
        "spawn ann/2: resumed, session of ann, told 0, owed reflect:h1",
        "spawn ben/2: resumed, session of ben, told 0",
    ]
    assert (stage["ann"].crashes, stage["ann"].idle) == (0, 0)


def test_remainders_of_pauses_are_carried_over_a_resume_but_no_breaker_is() -> None:
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=2))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=600.0), stage.exited("ben", Ending.CRASHED))
    stage.at(3, stage.exited("cid", Ending.CRASHED), stage.exited("dot", Ending.TERMINAL))
    assert stage.fleet.run.held_until == 303
    waiting = stage["ben"].deadline
    assert waiting is not None
    assert stage.at(4, on.Resumed())[-1] == "spawn dot/2: resumed, session of dot, told 0"
    assert (stage.fleet.run.held_until, stage.fleet.run.crashes) == (0, ())
    assert stage["ben"].deadline == waiting
    assert [line.split(":")[0].split()[1:] for line in stage.until(20)] == [["spawn", "ben/2"], ["spawn", "cid/2"]]
    assert stage.until(602) == ["602 spawn ann/2: usage limit, session of ann, told 0"]


def test_a_resume_forgets_the_crashes_that_the_breaker_counted() -> None:
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=2))
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.at(3, on.Resumed())
    stage.at(4, stage.exited("ben", Ending.CRASHED))
    assert stage.fleet.run.held_until == 0


def test_a_resume_ends_the_pause_of_the_queue() -> None:
    stage = Stage()
    stage.in_grading(2, "ann", "ann", "ann")
    for number in (1, 2, 3):
        stage.at(3, stage.not_started(f"#{number}"))
    stage.at(4, stage.submission("ann"))
    stage.at(4, stage.taken(4))
    assert stage.at(5, on.Resumed())[-1] == "grade #4/1: commit 4"
    assert (stage.fleet.run.voids, stage.fleet.run.queue_held_until) == (0, 0)


def test_who_was_being_stopped_when_the_supervisor_died_goes_on_as_resumed() -> None:
    stage = Stage(3, REFLECTING)
    stage.tried(2, "cid", 1.0)
    stop(stage, 3)
    stage.at(4, stage.exited("cid"))
    stage.until(13)
    assert [stage[name].phase for name in stage.names] == [Phase.TERMINATED, Phase.TERMINATED, Phase.WAITING]
    said = stage.at(14, on.Resumed())
    assert said[-1] == "spawn cid/2: resumed, session of cid, told 0, owed reflect:h1"
    assert stage.fleet.run.stopping == ""
    assert stage.at(15, stage.exited("ann"))[1:] == ["spawn ann/2: resumed, session of ann, told 0"]


def test_who_was_interrupted_to_be_stopped_is_interrupted_again_and_goes_on_as_resumed() -> None:
    stage = Stage()
    stop(stage, 2)
    assert stage.at(5, on.Resumed())[0] == "interrupt ann/1"
    assert stage["ann"].deadline == 15
    assert stage.at(6, stage.exited("ann"))[1:] == ["spawn ann/2: resumed, session of ann, told 0"]


def test_resuming_twice_is_resuming_once() -> None:
    stage = Stage(2, REFLECTING)
    stage.tried(2, "ann", 1.0)
    first = stage.at(3, on.Resumed())
    before = stage.fleet
    assert stage.at(3, on.Resumed()) == first
    assert stage.fleet == before


def test_the_unkillable_stay_retired_while_their_process_may_live_and_others_come_back() -> None:
    stage = Stage(3)
    stage.at(2, stage.lingered("ann"))
    stage.at(2, stage.exited("ben", Ending.CRASHED))
    stage.at(3, stage.exited("cid", Ending.TERMINAL, "no key"))
    stage.until(17)
    stop(stage, 18)
    assert stage["ann"].phase is Phase.RETIRED
    stage.at(18, stage.exited("ben"))
    assert "spawn cid/2: resumed, session of cid, told 0" in stage.at(20, on.Resumed())
    assert stage["ann"].phase is Phase.RETIRED
    # Nobody saw it end, but it is gone.
    assert stage.at(21, stage.exited("ann", Ending.LOST))[1:] == ["spawn ann/2: resumed, session of ann, told 0"]


def test_a_new_supervisor_forgives_the_crashes_that_made_an_agent_retire() -> None:
    stage = Stage(2)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(20)
    stage.at(20, stage.exited("ann", Ending.TERMINAL))
    assert stage["ann"].crashes == 1
    stage.at(21, on.Resumed())
    assert stage["ann"].crashes == 0


def test_who_never_started_starts_as_for_the_first_time() -> None:
    stage = Stage(2, started=False)
    stage.at(0, stage.asks("operator", on.Stop(reason="enough")))
    stage.at(1, stage.exited("ann"))
    assert stage.at(2, on.Resumed())[-1] == "spawn ben/1: start, told 0"
