"""A week in which agents, graders, supervisors and machines die at any moment: at its end all adds up as if none had.

The journal is a real one. Other weeks: `TIMES=50 pytest -o timeout=0 tests/decisions/week/test_week.py`.
"""

import os
from pathlib import Path
from random import Random

import pytest
from cases import TIMES
from moves import calm
from simulated_machine import RULES, SimulatedMachine, live
from world import FAILS, SCORES
from world_log import (
    assert_counted_once,
    assert_owed_once,
    assert_received_once,
    assert_repeated_only_unheard,
    published,
    tally,
)

from attempts.record import Verdict
from coral.fleet import events as on
from coral.fleet.events import Outcome
from coral.fleet.run_state import FLEET
from coral.journal import fold
from coral.journal.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WEEK = 7 * 86_400.0


@pytest.fixture
def lived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> SimulatedMachine:
    """A world that has lived through a week, and come to rest."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what a loss of power takes is another matter
    world = SimulatedMachine(RULES, tmp_path)
    live(world, Random(request.param), WEEK)
    calm(world)
    return world


@pytest.mark.parametrize("lived", range(TIMES), indirect=True)
def test_at_the_end_of_the_week_all_adds_up_as_if_nobody_had_died(lived: SimulatedMachine) -> None:
    assert min(lived.deaths, lived.adopted) > 100
    assert min(lived.boots, lived.copies) > 10
    assert_nothing_is_lost(lived)
    assert_scores_are_the_graders(lived)
    assert_counters_are_as_counted(lived)
    for rule in (assert_counted_once, assert_owed_once, assert_received_once, assert_repeated_only_unheard):
        rule(lived)
    assert_the_journal_says_the_same(lived)


def assert_nothing_is_lost(world: SimulatedMachine) -> None:
    """Each submission that an agent ever handed in is one record, under one number, or was refused."""
    records = published(world)[1:]
    assert sorted([*(attempt.submission for attempt in records), *set(world.refused)]) == sorted(world.handed)
    assert sorted(attempt.number for attempt in records) == list(range(1, len(records) + 1))
    assert all((attempt.agent, attempt.commit) == submitted_as(world, attempt.submission) for attempt in records)
    assert len(records) > 300


def submitted_as(world: SimulatedMachine, id: str) -> tuple[str, str]:
    return world.handed[id].agent, world.handed[id].commit


def assert_scores_are_the_graders(world: SimulatedMachine) -> None:
    """Whoever was graded again has the score it would have had; without one is only what fails, or was disturbed."""
    crashed = {
        event.number
        for turn in world.log
        for event in turn.events
        if isinstance(event, on.Graded) and event.outcome is Outcome.CRASHED
    }
    for attempt in published(world)[1:]:
        tree = int(attempt.tree, 16)
        if attempt.score is not None:
            assert attempt.score == SCORES[tree]
        else:
            assert attempt.verdict in (Verdict.FAILED, Verdict.VOID)
            assert tree >= FAILS or attempt.number in crashed


def assert_counters_are_as_counted(world: SimulatedMachine) -> None:
    for owner in (FLEET, *world.names):
        *_, (_, evals, stagnant) = tally(world, owner)
        progress = world.fleet.run.progress if owner == FLEET else world.fleet.agents[owner].progress
        assert (progress.evals, progress.stagnant) == (evals, stagnant)


def assert_the_journal_says_the_same(world: SimulatedMachine) -> None:
    """A new supervisor would go on from here, and each decision comes out the same again."""
    world.journal.close()
    assert fold(world.folder).fleet == world.fleet
    found = replay(world.folder)
    assert found.agrees
    assert found.same == len(world.log)
