"""Which processes the supervisor takes to be running, as the decisions see it."""

from dataclasses import replace

from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.expected_processes import (
    agents_to_find,
    grades_to_find,
    is_starting,
    jobs_to_find,
    live_agents,
    settled,
)
from coral.fleet.policy import MAX_KILLS


def test_agents_that_wait_have_no_process_and_who_could_not_be_killed_is_looked_for_again() -> None:
    stage = Stage(3)
    stage.at(2, stage.exited("ben", on.Ending.CRASHED))
    assert [agent.name for agent in live_agents(stage.fleet)] == ["ann", "cid"]
    assert [agent.name for agent in agents_to_find(stage.fleet)] == ["ann", "cid"]
    stage = Stage()
    stage.stop(2)
    stage.until(200)
    assert stage["ann"].kills == MAX_KILLS
    assert live_agents(stage.fleet) == []
    assert agents_to_find(stage.fleet) == [stage["ann"]]


def test_a_launch_is_starting_until_it_has_said_something_or_takes_too_long() -> None:
    stage = Stage(2, started=False)
    stage.until(1)
    assert is_starting(stage["ann"], 1)
    assert is_starting(stage["ann"], 29.9)
    assert not is_starting(stage["ann"], 30)
    later = replace(stage["ann"], spawned_at=100.0)
    assert is_starting(later, 129.9)
    assert not is_starting(later, 130)
    stage.at(2, stage.heard("ann"), stage.exited("ben", on.Ending.CRASHED))
    assert [is_starting(stage[name], 2) for name in ("ann", "ben")] == [False, False]


def test_grades_are_looked_for_from_their_checkout_to_their_end() -> None:
    stage = Stage(rules=replace(QUIET_RULES, slots=2))
    stage.in_grading(2, "ann", "ann", "ann")
    assert [attempt.number for attempt in grades_to_find(stage.fleet)] == [1, 2]
    stage.at(3, stage.graded(1, 1.0))
    assert [attempt.number for attempt in grades_to_find(stage.fleet)] == [2, 3]
    assert settled(stage.fleet) == [1]
    stage.at(4, on.Published(number=1))
    assert settled(stage.fleet) == []


def test_jobs_are_looked_for_once_they_run() -> None:
    stage = Stage()
    stage.at(2, stage.asks("ann", on.RunJob(agent="ann", argv=("true",))))
    (job,) = jobs_to_find(stage.fleet)
    assert job.number == 1
    waiting = replace(stage.fleet, jobs={1: replace(job, phase=Phase.WAITING)})
    assert jobs_to_find(waiting) == []
