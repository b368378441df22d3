"""Fleets of native agents under a real supervisor: they improve real tasks, answer heartbeats, stop and go on."""

import re
from pathlib import Path

import pytest
from native_task import CHECK, write_task
from real_runs import Run, wait_until

from attempts.store import Store
from coral.fleet.actions import Spawn
from workspace.knowledge import list_skills
from workspace.notes import find_notes

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "circle_packing"
AGENTS = [f"agent-{number}" for number in range(1, 5)]
OVERRIDES = (
    "agents.count=4",
    # Wall-clock seconds of an episode: a loaded machine gives it a part of a core.
    "agents.options={seconds: 2}",
    "budget.hours=1",
    "grader.slots=2",
    "run.max_defer=1",
    # However loaded the machine is, an agent may finish what it writes: nothing escalates.
    "run.interrupt_grace=60",
    # A checkpoint interrupts one second after it is due. A launch that is interrupted before it searches gains nothing.
    "heartbeats=[{name: redirect, stagnant: 2}, {name: checkpoint, seconds: 20}, {name: consolidate, every: 5}]",
)


def printed(run: Run, agent: str) -> str:
    """Everything an agent printed in all its launches."""
    return "".join(path.read_text() for path in sorted(run.layout.logs(agent).glob("*.jsonl")))


def loaded_from_another(run: Run) -> bool:
    """Whether an agent has loaded a skill that another one wrote."""
    loads = ((agent, other) for agent in AGENTS for other in AGENTS if other != agent)
    return any(re.search(rf"loaded the skill by {other}, up to", printed(run, agent)) for agent, other in loads)


def sessions(run: Run) -> dict[str, set[str | None]]:
    """The sessions in which each agent was started; a first launch may still have none."""
    spawns = [action for decision in run.decisions() for action in decision.actions if isinstance(action, Spawn)]
    return {name: {spawn.session for spawn in spawns if spawn.agent == name and spawn.launch > 1} for name in AGENTS}


@pytest.mark.timeout(1200)
def test_a_fleet_on_a_real_problem(start):
    run = start(EXAMPLE, overrides=OVERRIDES)

    def all_received() -> bool:
        names = {name for event in run.events("heartbeat") for name in event["text"].split(" (")[0].split(", ")}
        return {"reflect", "consolidate", "redirect", "checkpoint"} <= names

    wait_until(all_received, 400, "every kind of heartbeat")  # four that compute, on a part of a core
    shared = run.layout.shared
    wait_until(lambda: any(note.kind == "synthesis" for note in find_notes([shared])), what="a synthesis")
    wait_until(lambda: any("HEARTBEAT_OK" in printed(run, name) for name in AGENTS), what="a report on the checklist")
    wait_until(lambda: list_skills(shared), what="a skill")
    wait_until(lambda: loaded_from_another(run), what="a skill that another agent has loaded")
    # On a busy machine all that comes before they have computed much.
    wait_until(lambda: max(attempt.score or 0.0 for attempt in run.attempts()) > 2.1, 400, "a good packing")
    run.stop()
    assert run.left() == []

    fleet, attempts = run.fleet(), run.attempts()
    notes = [note for note in find_notes([shared]) if note.kind in ("note", "synthesis")]
    assert len([note for note in notes if note.is_synthesis]) == 1
    numbers = {attempt.number for attempt in attempts}
    assert notes
    assert all(set(note.attempts) <= numbers | {0} for note in notes if note.attempts)
    ends = [note for note in find_notes([shared]) if note.kind == "dead-end"]
    assert all(len(note.attempts) >= 2 and set(note.attempts) <= numbers for note in ends)
    # Interrupted and resumed into the same conversation: several launches, one session each.
    for name in AGENTS:
        assert fleet.agents[name].launch >= 2
        assert fleet.agents[name].session
    assert sessions(run) == {name: {fleet.agents[name].session} for name in AGENTS}
    assert {event["ending"] for event in run.events("exited")} <= {"interrupted", "clean"}

    run.supervise()
    run.wait_for_attempts(len(attempts) + 2)
    run.stop()
    assert sessions(run) == {name: {fleet.agents[name].session} for name in AGENTS}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("check", [True, False])
def test_a_real_task_gets_better_with_and_without_a_check(start, tmp_path, check):
    """A real supervisor; without a check each candidate is an attempt, and some of them are better than the seed."""
    # On a loaded machine a third of a second can be too short to find anything that keeps the constraints.
    extra = "agents:\n  count: 2\n  runtime: native\n  options: {seconds: 1}\n"
    run = start(write_task(tmp_path / "task", CHECK if check else "", extra))
    seed = Store(run.layout.attempts).read(0).score

    def better() -> bool:
        scores = [attempt.score for attempt in run.attempts() if attempt.score is not None]
        return len(scores) >= 6 and min(scores) < seed - (20 if check else 1e-3)

    wait_until(better, what="a better score")
    wait_until(lambda: find_notes([run.layout.shared]), 120.0, "a note")
    run.stop()
    graded = [attempt for attempt in run.attempts() if attempt.score is not None or attempt.verdict == "failed"]
    assert all(attempt.title for attempt in graded)
    if check:
        assert [attempt for attempt in graded if attempt.verdict == "failed"] == []
