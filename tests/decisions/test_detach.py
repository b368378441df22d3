"""A supervisor that leaves its agents at work, as transcripts: nothing begins, nothing falls due, all is taken over."""

from dataclasses import replace

import pytest
from stage import QUIET_RULES, REFLECT, REFLECTING, Stage, brief, on_request

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.events import Ending
from heartbeats.heartbeat import Heartbeat
from heartbeats.trigger import Elapsed

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
    assert stage.at(3, leave(stage), stage.graded(1, 1.0))[2:] == ["publish #1 improved 1"]
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
