"""A cluster, as transcripts: as many grades begin as it has room for; where it cannot be used none does, those that run
wait, and all goes on afterwards."""

from dataclasses import replace

from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.health import HealthLevel, health_of
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import AttemptStep

PATIENT = replace(QUIET_RULES, stall=1e6)  # with agents that are silent for long
GONE = on.ClusterChecked(problem="the head does not answer")
BACK = on.ClusterChecked(problem="")
TOLD = "alert run-alert-1: no grade begins until the cluster can be used again: the head does not answer"
GOES_ON = "alert run-alert-2: the cluster can be used again; grading continues"


def test_it_is_told_once_and_so_is_its_end() -> None:
    stage = Stage()
    assert stage.at(2, BACK) == []
    assert stage.at(3, GONE) == [TOLD]
    assert health_of(stage.fleet)[0] is HealthLevel.UNHEALTHY
    assert stage.at(4, on.ClusterChecked(problem="it refuses")) == []
    assert stage.fleet.run.cluster_problem == "it refuses"
    assert stage.at(5, BACK) == [GOES_ON]
    assert health_of(stage.fleet)[0] is HealthLevel.HEALTHY


def test_what_is_handed_in_meanwhile_is_graded_afterwards() -> None:
    stage = Stage(rules=PATIENT)
    stage.at(2, GONE)
    stage.at(3, stage.submission("ann"))
    assert stage.at(4, stage.taken(1)) == []
    assert stage.until(40_000) == [], "nor is the queue said to be stuck"
    assert stage.pending(1).step is AttemptStep.QUEUED
    assert "grade #1/1: commit 1" in stage.at(40_000, BACK)


def test_the_time_of_a_grade_that_runs_is_not_up() -> None:
    stage = Stage(rules=replace(PATIENT, grade_timeout=100.0))
    stage.in_grading(2, "ann")
    stage.at(3, GONE)
    assert stage.until(5000) == []
    assert (stage.pending(1).step, stage.pending(1).deadline) == (AttemptStep.GRADING, 5002)  # looked at every 100 s
    stage.at(5000, BACK)
    assert stage.until(5099) == []
    said = stage.at(5099.5, stage.graded(1, 2.0))
    assert any(line.startswith("publish #1 new best 2") for line in said), said


def test_a_grade_whose_time_was_not_up_has_all_of_it_again() -> None:
    stage = Stage(rules=replace(PATIENT, grade_timeout=100.0))
    stage.in_grading(2, "ann")
    stage.at(3, GONE)
    stage.at(90, BACK)
    assert stage.until(189) == []
    assert stage.until(190) == ["190 terminate #1/1"]


def test_a_resume_finds_out_anew_whether_the_cluster_can_be_used() -> None:
    stage = Stage(rules=PATIENT)
    stage.at(2, GONE)
    stage.stop(3)
    stage.at(4, stage.exited("ann", on.Ending.INTERRUPTED))
    stage.at(5, on.Resumed())
    assert stage.fleet.run.cluster_problem == ""
    assert TOLD.replace("-1", "-2") in stage.at(6, GONE)


def test_as_many_grades_begin_as_the_cluster_has_room_for_while_it_grows_and_shrinks() -> None:
    stage = Stage(rules=replace(PATIENT, slots=10, follows_cluster=True))
    for _ in range(5):
        stage.at(2, stage.submission("ann"))
    assert stage.at(3, *(stage.taken(number) for number in range(1, 6))) == ["grade #1/1: commit 1"]
    assert stage.at(4, on.ClusterMeasured(capacity=3)) == ["grade #2/1: commit 2", "grade #3/1: commit 3"]
    assert stage.at(5, on.ClusterMeasured(capacity=1)) == []
    assert not [line for line in stage.at(6, stage.graded(1, 1.0)) if line.startswith("grade ")]
    stage.at(7, stage.graded(2, 1.0))
    assert "grade #4/1: commit 4" in stage.at(8, stage.graded(3, 1.0))


def test_a_cluster_that_grows_from_nothing_has_grades_to_grow_for() -> None:
    stage = Stage(rules=replace(PATIENT, slots=10, follows_cluster=True, cluster_grows=True))
    for _ in range(6):
        stage.at(2, stage.submission("ann"))
    begun = stage.at(3, *(stage.taken(number) for number in range(1, 7)))
    assert begun == ["grade #1/1: commit 1", "grade #2/1: commit 2"]
    assert stage.at(4, on.ClusterMeasured(capacity=1)) == ["grade #3/1: commit 3"]


def test_of_the_cluster_that_agents_run_on_it_is_told_too_and_grades_go_on() -> None:
    stage = Stage(rules=PATIENT)
    gone, back = on.AgentsClusterChecked(problem="no head"), on.AgentsClusterChecked(problem="")
    assert stage.at(2, back) == []
    assert stage.at(3, gone) == ["alert run-alert-1: launches on the cluster begin when it can be used again: no head"]
    assert stage.at(4, on.AgentsClusterChecked(problem="it refuses")) == []
    stage.in_grading(5, "ann")
    assert stage.at(6, back) == ["alert run-alert-2: the cluster that agents run on can be used again"]
    stage.at(7, gone)
    stage.at(8, on.Resumed(away=1.0))
    assert stage.fleet.run.agents_cluster_problem == ""


def test_each_node_that_gets_no_grade_is_told_once_while_that_is_so() -> None:
    stage = Stage(rules=PATIENT)
    told = "alert run-alert-{}: a node of the cluster gets no grade for a while: {}"
    assert stage.at(2, on.NodesExcluded(nodes={"h": "full"})) == [told.format(1, "h: full")]
    assert stage.at(3, on.NodesExcluded(nodes={"h": "full", "i": "full"})) == [told.format(2, "i: full")]
    assert stage.at(4, on.NodesExcluded(nodes={"i": "still full"})) == []
    assert stage.at(5, on.NodesExcluded(nodes={"h": "full", "i": "full"})) == [told.format(3, "h: full")]
    stage.at(6, on.Resumed(away=1.0))
    assert stage.fleet.run.excluded_nodes == {}


def lost(stage: Stage, clock: float) -> str:
    """The last line that is said where the node of ann's launch is lost."""
    return stage.at(clock, stage.exited("ann", on.Ending.LOST, "its node died"))[-1]


def test_an_agent_whose_launches_are_lost_again_and_again_waits_as_after_a_crash() -> None:
    stage = Stage()
    for launch in (2, 3, 4):
        assert lost(stage, launch) == f"spawn ann/{launch}: resumed, session of ann, told 0"
    lost(stage, 5)
    assert (stage["ann"].phase, stage["ann"].crashes, stage.breaker.crashes) == (Phase.WAITING, 1, (5.0,))
    assert stage["ann"].reason == Reason(ReasonKind.CRASHED, detail="its node died")
    assert 10 <= stage.deadline("ann") <= 11
    stage.until(11)
    lost(stage, 12)
    assert stage["ann"].crashes == 2, "until it submits"
    stage.until(30)
    stage.at(31, stage.submission("ann"))
    for clock in (32, 33, 34, 35):
        assert "spawn ann" in lost(stage, clock)
    lost(stage, 36)
    assert stage["ann"].crashes == 3


def test_only_losses_in_a_row_under_one_supervisor_count() -> None:
    stage = Stage()
    for between in (stage.exited("ann", on.Ending.CRASHED), on.Resumed()):
        for _ in range(3):
            assert "resumed" in lost(stage, stage.clock + 1)
        stage.at(stage.clock + 1, replace(between, launch=4) if isinstance(between, on.Exited) else between)
        stage.until(stage.clock + 20)
    assert "resumed" in lost(stage, stage.clock + 1)
    assert (stage["ann"].losses, stage["ann"].phase) == (1, Phase.RUNNING)
