"""The end of a run and its resumption, as transcripts: budgets, stop, what is kept, what is done again."""

from dataclasses import replace

from stage import QUIET_RULES, REFLECT, REFLECTING, TIP, Stage, brief, on_request

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.events import Ending, Outcome
from coral.fleet.run_state import AttemptStep
from heartbeats.heartbeat import Heartbeat, Scope
from heartbeats.trigger import Elapsed

# --- stop ---------------------------------------------------------------------------------------------------------


def test_stop_interrupts_who_runs_starts_nobody_and_finishes_when_all_are_gone() -> None:
    stage = Stage(4, REFLECTING)
    stage.at(2, stage.exited("ben", Ending.CRASHED), stage.exited("cid", Ending.LIMIT, until=50.0))
    assert stage.stop(3) == ["answer operator/1: yes, stopping", "interrupt ann/1", "interrupt dot/1"]
    assert (brief(stage["ann"].reason), stage["ann"].deadline) == ("stop", 13)
    assert (stage["ben"].phase, stage["ben"].deadline, brief(stage["ben"].reason)) == (Phase.WAITING, None, "stop")
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED)) == ["exited ann: launch 1 ended: interrupted"]
    assert stage.until(13) == ["13 terminate dot/1"]
    assert stage.at(14, stage.exited("dot", Ending.CRASHED)) == [
        "exited dot: launch 1 ended: crashed",
        "finish: request (enough)",
    ]
    assert brief(stage.fleet.run.finished) == "request (enough)"
    assert [stage[name].phase for name in stage.names] == [Phase.WAITING, Phase.WAITING, Phase.PARKED, Phase.WAITING]
    assert [stage[name].deadline for name in stage.names] == [None, None, 52, None]
    assert stage.until(1000) == []


def test_stopping_twice_keeps_the_first_reason() -> None:
    stage = Stage()
    stage.stop(2, "")
    assert stage.stop(3, "again") == ["answer operator/2: yes, stopping"]
    assert stage.at(4, stage.exited("ann"))[-1] == "finish: request"
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=50.0))
    assert stage.stop(3) == ["answer operator/1: yes, stopping", "finish: request (enough)"]


def test_what_is_interrupted_for_a_heartbeat_when_the_stop_comes_stays_owed() -> None:
    stage = Stage(rules=REFLECTING)
    stage.tried(2, "ann", 1.0)
    assert stage.stop(3) == ["answer operator/1: yes, stopping"]
    assert stage["ann"].deadline == 12
    assert stage.at(4, stage.exited("ann", Ending.INTERRUPTED))[1:] == ["finish: request (enough)"]
    assert stage.at(5, on.Resumed()) == [
        "show fleet",
        "show ann",
        "spawn ann/2: resumed, session of ann, told 0, owed reflect:h1",
    ]


def test_while_a_run_stops_no_launch_follows_another_and_heartbeats_rest() -> None:
    stage = Stage()
    stage.in_grading(2, "ann")
    (asked, *events) = [stage.asks("operator", on.Stop(end=on_request("enough"))), stage.exited("ann")]
    assert stage.at(3, *events, asked)[:2] == ["exited ann: launch 1 ended: clean", "answer operator/1: yes, stopping"]
    assert stage["ann"].phase is Phase.WAITING
    assert stage["ann"].deadline is None
    clock = Heartbeat(name="checkpoint", trigger=Elapsed(5))
    pulse = Heartbeat(name="pulse", trigger=Elapsed(5), scope=Scope.FLEET, prompt="tick")
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=(clock, pulse)))
    stage.stop(2)
    assert stage.until(12) == ["12 terminate ann/1"]
    assert stage["ann"].pending_messages == ()
    assert stage.fleet.run.unassigned_messages == ()


def test_an_unkillable_agent_is_named_holds_up_no_stop_and_waits_for_the_resume() -> None:
    stage = Stage(2)
    stage.stop(2)
    stage.at(3, stage.exited("ben", Ending.INTERRUPTED))
    assert stage.until(100)[-3:] == [
        "47 kill ann/1",
        "79 alert run-alert-1 of ann: ann has retired: unkillable",
        "79 finish: request (enough)",
    ]
    stage = Stage(2)
    stage.tried(2, "ben", 1.0)
    stage.at(2, stage.lingered("ann"))
    stage.until(69)
    assert stage["ann"].phase is Phase.RETIRED
    stage.stop(70)
    stage.at(71, stage.exited("ann", Ending.CRASHED))
    assert (stage["ann"].phase, stage["ann"].deadline) == (Phase.WAITING, None)


# --- attempts and the stop ----------------------------------------------------------------------------------------


def test_stop_keeps_attempts_in_hand_for_the_resume() -> None:
    stage = Stage(2, replace(REFLECTING, slots=1))
    stage.tried(2, "ann", 1.0)
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=99.0), stage.exited("ben", Ending.LIMIT, until=99.0))
    stage.in_grading(3, "ann", "ann")
    stage.at(3, stage.submission("ben"))
    stage.at(4, on.Notified(id="run-alert-1"), on.Notified(id="run-alert-2"))
    assert stage.stop(4) == ["answer operator/1: yes, stopping", "terminate #2/1"]
    # A score that comes now is not waited for; another slot is not filled; nor is a commit that is on its way.
    assert stage.at(5, stage.graded(2, 9.0)) == ["finish: request (enough)"]
    assert {number: pending.step for number, pending in stage.fleet.pending.items()} == {
        2: AttemptStep.QUEUED,
        3: AttemptStep.QUEUED,
        4: AttemptStep.TAKING,
    }
    assert stage.at(7, on.Resumed()) == [
        "accept 2 of ann as #2",
        "accept 3 of ann as #3",
        "accept 4 of ben as #4",
        "take in #4: commit 4 of ben",
        "show fleet",
        "show ann",
        "show ben",
        "grade #2/2: commit 2",
    ]
    # What was stopped once is judged like any other now.
    assert stage.at(8, stage.graded(2, 9.0))[:1] == ["publish #2 new best 9"]


def test_a_submission_during_the_stop_stays_in_the_inbox() -> None:
    stage = Stage()
    submission = stage.submission("ann")
    stage.stop(2)
    assert stage.at(3, submission) == []
    stage.at(4, stage.exited("ann"))
    assert stage.at(5, on.Resumed(), submission)[2:] == [
        "take in #1: commit 1 of ann",
        "accept 1 of ann as #1",
        "spawn ann/2: resumed, session of ann, told 0",
    ]


def test_the_attempt_of_a_grader_that_is_deaf_or_was_not_started_because_of_the_stop_is_kept() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    assert stage.stop(3)[1:] == ["terminate #1/1"]
    assert stage.until(8) == ["8 kill #1/1"]
    assert stage.at(9, stage.graded(1, outcome=Outcome.CRASHED)) == ["finish: request (enough)"]
    assert stage.pending(1).step is AttemptStep.QUEUED
    assert stage.pending(1).suspicion == ""
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    stage.stop(3)
    assert stage.at(4, stage.not_started("#1")) == ["finish: request (enough)"]
    assert stage.pending(1).step is AttemptStep.QUEUED


def test_an_unkillable_grader_is_named_and_its_attempt_kept() -> None:
    stage = Stage()
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    stage.stop(3)
    assert stage.until(100)[-2:] == [
        "70 alert run-alert-2: the grader of #1 cannot be killed; its slot is given up",
        "70 finish: request (enough)",
    ]
    assert (stage.pending(1).step, stage.pending(1).deadline) == (AttemptStep.QUEUED, None)
    stage.at(72, on.Resumed())
    assert stage.until(500)[-7:-5] == ["377 kill #1/2", "379 kill #1/2"]


def test_a_grade_that_was_out_of_time_when_the_stop_came_is_graded_again() -> None:
    stage = Stage(rules=replace(QUIET_RULES, grade_timeout=10.0))
    stage.at(2, stage.exited("ann", Ending.LIMIT))
    stage.in_grading(2, "ann")
    assert stage.until(12) == ["12 terminate #1/1"]
    assert stage.stop(13) == ["answer operator/1: yes, stopping"]
    assert stage.at(14, stage.graded(1, outcome=Outcome.CRASHED)) == ["finish: request (enough)"]
    stage.at(15, on.Resumed())
    assert stage.at(16, stage.graded(1, 1.0)) == ["publish #1 new best 1"]


def test_what_cannot_be_published_holds_up_no_stop_and_is_published_by_the_resume() -> None:
    stage = Stage(2, replace(QUIET_RULES, heartbeats=(REFLECT, TIP)))
    stage.in_grading(2, "ann", wait=60)
    stage.at(3, stage.graded(1, 1.0))
    stage.stop(4)
    stage.at(5, stage.exited("ann", Ending.INTERRUPTED))
    assert stage.at(5, stage.exited("ben", Ending.INTERRUPTED))[-1] == "finish: request (enough)"
    assert stage.at(6, on.Resumed())[:2] == ["accept 1 of ann as #1", "publish #1 new best 1, then reflect tip"]
    assert stage.at(7, on.Published(number=1)) == []
    assert stage.fleet.pending == {}
    assert stage.fleet.run.order == 1
    stage = Stage(rules=replace(QUIET_RULES, heartbeats=(TIP,)))
    stage.in_grading(2, "ann", wait=60)
    assert stage.at(3, stage.graded(1, 1.0)) == ["publish #1 new best 1, printing tip:h1"]
    assert "publish #1 new best 1" in stage.at(4, on.Resumed())
    assert stage.until(33) == ["33 interrupt ann/1"]


def test_a_denial_is_for_good_only_when_it_is_repeated() -> None:
    stage = Stage(rules=replace(QUIET_RULES, breaker_crashes=99))
    for _ in range(3):
        said = stage.at(stage.clock, stage.exited("ann", Ending.DENIED, "403 Forbidden"))
        assert said[1].endswith("crashed (403 Forbidden)")
        stage.until(stage.deadline("ann"))
    stage.at(stage.clock, stage.exited("ann", Ending.DENIED, "403 Forbidden"))
    assert stage["ann"].phase is Phase.RETIRED
    assert stage["ann"].reason.detail == "403 Forbidden"


def test_crashes_and_limits_before_a_denial_say_nothing_of_it() -> None:
    stage = Stage(rules=replace(QUIET_RULES, breaker_crashes=99))
    for _ in range(5):
        stage.at(stage.clock, stage.exited("ann", Ending.CRASHED, "a lost connection"))
        stage.until(stage.deadline("ann"))
    said = stage.at(stage.clock, stage.exited("ann", Ending.DENIED, "403 Forbidden"))
    assert said[1].endswith("crashed (403 Forbidden)")
    assert stage["ann"].denials == 1
    stage.until(stage.deadline("ann"))
    stage.at(stage.clock, stage.exited("ann", Ending.CRASHED))
    assert stage["ann"].denials == 0
