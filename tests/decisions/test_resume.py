"""A new supervisor, as transcripts: who runs is left alone, what may not have been done is done again."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECT, REFLECTING, Stage, brief, on_request

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.events import Ending
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed


def test_a_new_supervisor_leaves_who_runs_alone_and_does_again_what_may_not_have_been_done() -> None:
    stage = Stage(2, REFLECTING)
    stage.at(2, stage.submission("ann"))
    stage.in_grading(2, "ben")
    stage.in_grading(2, "ben", wait=60)
    stage.at(3, stage.graded(3, 1.0))
    assert stage.at(8, on.Resumed()) == [
        "interrupt ben/1",
        "accept 1 of ann as #1",
        "take in #1: commit 1 of ann",
        "accept 2 of ben as #2",
        "accept 3 of ben as #3",
        "publish #3 new best 1, then reflect",
        "show fleet",
        "show ann",
        "show ben",
    ]
    assert stage["ann"].deadline == 1208
    assert (stage["ben"].deadline, brief(stage["ben"].reason)) == (13, "heartbeat")
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
    assert (stage["ann"].crashes, stage["ann"].unproductive_turns) == (0, 0)


def test_remainders_of_pauses_are_carried_over_a_resume_but_no_breaker_and_no_pause_of_the_queue() -> None:
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=2))
    stage.at(2, stage.exited("ann", Ending.LIMIT, until=600.0), stage.exited("ben", Ending.CRASHED))
    stage.at(3, stage.exited("cid", Ending.CRASHED), stage.exited("dot", Ending.TERMINAL))
    assert stage.breaker.paused_until == 303
    waiting = stage.deadline("ben")
    assert stage.at(4, on.Resumed())[-1] == "spawn dot/2: resumed, session of dot, told 0"
    assert (stage.breaker.paused_until, stage.breaker.crashes) == (0, ())
    assert stage["ben"].deadline == waiting
    assert [line.split(":")[0].split()[1:] for line in stage.until(20)] == [["spawn", "ben/2"], ["spawn", "cid/2"]]
    assert stage.until(602) == ["602 spawn ann/2: at limit, session of ann, told 0"]
    stage = Stage(4, replace(QUIET_RULES, breaker_crashes=2))
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.at(3, on.Resumed())
    stage.at(4, stage.exited("ben", Ending.CRASHED))
    assert stage.breaker.paused_until == 0
    stage = Stage()
    stage.in_grading(2, "ann", "ann", "ann")
    for number in (1, 2, 3):
        stage.voided(3, number)
    stage.at(4, stage.submission("ann"))
    stage.at(4, stage.taken(4))
    assert stage.at(5, on.Resumed())[-1] == "grade #4/1: commit 4"
    assert (stage.fleet.run.voids_in_a_row, stage.fleet.run.queue_paused_until) == (0, 0)


def test_who_was_being_stopped_when_the_supervisor_died_goes_on_as_resumed() -> None:
    stage = Stage(3, REFLECTING)
    stage.tried(2, "cid", 1.0)
    stage.stop(3)
    stage.at(4, stage.exited("cid"))
    stage.until(13)
    assert [stage[name].phase for name in stage.names] == [Phase.TERMINATED, Phase.TERMINATED, Phase.WAITING]
    said = stage.at(14, on.Resumed())
    assert said[-1] == "spawn cid/2: resumed, session of cid, told 0, owed reflect:h1"
    assert stage.fleet.run.stopping is None
    assert stage.at(15, stage.exited("ann"))[1:] == ["spawn ann/2: resumed, session of ann, told 0"]
    stage = Stage()
    stage.stop(2)
    assert stage.at(5, on.Resumed())[0] == "interrupt ann/1"
    assert stage["ann"].deadline == 12
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
    stage.until(70)
    stage.stop(71)
    assert stage["ann"].phase is Phase.RETIRED
    stage.at(71, stage.exited("ben"))
    assert "spawn cid/2: resumed, session of cid, told 0" in stage.at(73, on.Resumed())
    assert stage["ann"].phase is Phase.RETIRED
    # Nobody saw it end, but it is gone.
    assert stage.at(74, stage.exited("ann", Ending.LOST))[1:] == ["spawn ann/2: resumed, session of ann, told 0"]
    stage = Stage(2)
    stage.at(2, stage.exited("ann", Ending.CRASHED))
    stage.until(20)
    stage.at(20, stage.exited("ann", Ending.TERMINAL))
    assert stage["ann"].crashes == 1
    stage.at(21, on.Resumed())
    assert stage["ann"].crashes == 0


def test_who_never_started_starts_as_for_the_first_time() -> None:
    stage = Stage(2, replace(QUIET_RULES, stagger=0.05), started=False)
    stage.stop(0)
    stage.at(1, stage.exited("ann"))
    assert stage.at(2, on.Resumed())[-1] == "spawn ann/2: resumed, told 0"
    assert stage.until(3) == ["2.05 spawn ben/1: start, told 0"]


def test_an_alert_is_said_again_until_it_is_known_to_be_said() -> None:
    stage = Stage(3)
    for name in ("ann", "ben"):
        stage.at(2, stage.asks(name, on.RaiseAlert(text=f"look at {name}")))
    assert stage.at(3, on.Notified(id="run-alert-1")) == []
    for clock in (4, 5):
        assert stage.at(clock, on.Resumed())[0] == "alert run-alert-2 of ben: look at ben again"
    stage.at(6, stage.asks("cid", on.RaiseAlert(text="look at cid")), on.Notified(id="run-alert-2"))
    assert stage.at(7, on.Resumed())[0] == "alert run-alert-3 of cid: look at cid again"
    stage.at(8, on.Notified(id="run-alert-3"))
    assert stage.at(9, on.Resumed()) == ["show fleet", "show ann", "show ben", "show cid"]


CHECKPOINT = Heartbeat(name="checkpoint", trigger=Elapsed(100))
YES = "yes, agents and grades continue without a supervisor"


def leave(stage: Stage, reason: str = "an upgrade") -> on.Requested:
    return stage.asks("operator", on.Leave(end=on_request(reason)))


def test_who_is_left_at_work_is_neither_signalled_nor_restarted() -> None:
    stage = Stage(2)
    assert stage.at(2, leave(stage)) == [
        "left: agents and grades continue without a supervisor",
        f"answer operator/1: {YES}",
    ]
    assert brief(stage.fleet.run.detached_reason) == "request (an upgrade)"
    assert stage.at(2, on.Resumed()) == ["show fleet", "show ann", "show ben"]
    assert stage.fleet.run.detached_reason is None
    assert [(agent.phase, agent.launch) for agent in stage.fleet.agents.values()] == [(Phase.RUNNING, 1)] * 2
    stage = Stage()
    stage.at(2, leave(stage, ""))
    assert brief(stage.fleet.run.detached_reason) == "request"


def test_while_a_run_is_left_nothing_begins_and_nothing_falls_due() -> None:
    rules = replace(QUIET_RULES, heartbeats=(REFLECT, CHECKPOINT), budget_seconds=500.0, stall=300.0, max_defer=0.0)
    stage = Stage(3, rules)
    stage.in_grading(2, "ann")
    stage.at(3, stage.exited("cid", Ending.LIMIT, until=50.0))
    stage.at(4, stage.submission("ben"))
    stage.at(5, leave(stage))
    # A stall, a budget, a checkpoint, a grader's timeout, a limit that is over, and a candidate that is in the hub.
    assert stage.until(2000) == []
    assert stage.at(2000, stage.taken(2)) == []


def test_after_that_what_is_handed_in_waits_and_a_grade_counts_and_interrupts_nobody_before_the_resume() -> None:
    stage = Stage()
    late = stage.submission("ann")
    assert stage.at(2, leave(stage), late)[1:] == [f"answer operator/1: {YES}"]
    assert stage.fleet.run.next_number == 1
    assert stage.at(2, on.Resumed(), late)[2:] == ["take in #1: commit 1 of ann", "accept 1 of ann as #1"]
    stage = Stage(rules=REFLECTING)
    stage.in_grading(2, "ann")
    assert stage.at(3, leave(stage), stage.graded(1, 1.0))[2:] == ["publish #1 new best 1"]
    assert stage.owed("ann") == ["reflect h1"]
    assert "interrupt ann/1" in stage.at(3, on.Resumed())


def test_a_run_that_stops_is_not_left_and_one_that_is_left_can_be_stopped() -> None:
    stage = Stage()
    both = [stage.asks("operator", on.Stop(end=on_request("enough"))), leave(stage)]
    assert stage.at(2, *both) == [
        "answer operator/1: yes, stopping",
        "answer operator/2: no, cannot leave the agents at work: the run is stopping"
        " (wait for its end, then `coral resume`)",
        "interrupt ann/1",
    ]
    assert (stage.fleet.run.detached_reason, brief(stage.fleet.run.stopping)) == (None, "request (enough)")
    stage = Stage()
    both = [leave(stage), stage.asks("operator", on.Stop(end=on_request("enough")))]
    assert stage.at(2, *both)[1:] == [
        f"answer operator/1: {YES}",
        "answer operator/2: yes, stopping",
        "interrupt ann/1",
    ]
    assert stage.fleet.run.detached_reason is None
    stage = Stage()
    stage.at(2, leave(stage))
    assert stage.at(2, on.Resumed(), stage.asks("operator", on.Stop(end=on_request("enough"))))[2:] == [
        "answer operator/2: yes, stopping",
        "interrupt ann/1",
    ]
    assert stage.at(3, stage.exited("ann", Ending.INTERRUPTED))[-1] == "finish: request (enough)"


@pytest.mark.parametrize("sender", ["ann", "nobody"])
def test_only_the_operator_sends_the_supervisor_away(sender: str) -> None:
    stage = Stage()
    assert stage.ask(sender, on.Leave(end=on_request()))[0].startswith(f"answer {sender}: no, cannot ")
    assert stage.fleet.run.detached_reason is None


def test_agents_that_the_task_has_since_a_resume_begin_like_all_others() -> None:
    stage = Stage(1, replace(QUIET_RULES, agents=("ann",)))
    stage.rules = replace(stage.rules, agents=("ann", "ben", "cid"), stagger=0.5)
    said = [line for line in stage.at(5, on.Resumed()) if "show" not in line]
    assert said == ["spawn ben/1: start, told 0"]
    assert stage.until(6) == ["5.5 spawn cid/1: start, told 0"]
    assert list(stage.fleet.heartbeats) == ["fleet", "ann", "ben", "cid"]
    # Another resume adds nobody twice.
    stage.at(7, on.Resumed())
    assert list(stage.fleet.agents) == ["ann", "ben", "cid"]


def test_agents_that_the_task_has_no_more_end_and_can_come_back() -> None:
    stage = Stage(3, replace(QUIET_RULES, agents=("ann", "ben", "cid")))
    stage.at(2, stage.exited("cid"))
    stage.rules = replace(stage.rules, agents=("ann",))
    said = stage.at(2.5, on.Resumed())
    assert "interrupt ben/1" in said
    stage.at(3, stage.exited("ben", Ending.INTERRUPTED))
    stage.until(20)
    retired = {name: agent.phase is Phase.RETIRED for name, agent in stage.fleet.agents.items()}
    assert retired == {"ann": False, "ben": True, "cid": True}
    assert brief(stage["ben"].reason) == brief(stage["cid"].reason) == "left out"
    assert stage.fleet.run.undelivered_alerts == ()
    stage.rules = replace(stage.rules, agents=("ann", "ben"))
    said = [*stage.at(21, on.Resumed()), *stage.until(30)]
    assert [line for line in said if "spawn ben/2" in line]
    assert stage["cid"].phase is Phase.RETIRED
