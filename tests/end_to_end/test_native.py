"""The whole thing on a real problem: a fleet of native agents packs circles, learns, is stopped, and goes on."""

import re
from pathlib import Path

import pytest
from real_runs import Run, wait_until

from coral.fleet.actions import Spawn
from workspace.knowledge import list_notes, list_skills

EXAMPLE = Path(__file__).parents[2] / "examples" / "circle_packing"
AGENTS = [f"agent-{number}" for number in range(1, 5)]
OVERRIDES = (
    "agents.count=4",
    "agents.options={seconds: 0.7}",
    "grader.slots=2",
    "run.max_defer=1",
    # However loaded the machine is, an agent may finish what it writes: nothing escalates.
    "run.interrupt_grace=60",
    "heartbeats=[{name: redirect, stagnant: 2}, {name: checkpoint, seconds: 4}, {name: consolidate, every: 5}]",
)


def said(run: Run, agent: str) -> str:
    """Everything an agent printed in all its launches."""
    return "".join(path.read_text() for path in sorted(run.layout.logs(agent).glob("*.jsonl")))


def loaded_from_another(run: Run) -> bool:
    """Whether an agent has said that it goes by a skill that another one wrote."""
    loads = ((agent, other) for agent in AGENTS for other in AGENTS if other != agent)
    return any(re.search(rf"loaded [^\"]*\bby {other} after", said(run, agent)) for agent, other in loads)


def sessions(run: Run) -> dict[str, set[str | None]]:
    """The sessions in which each agent was started; a first launch may still have none."""
    spawns = [each for decision in run.decisions() for each in decision.actions if isinstance(each, Spawn)]
    return {name: {each.session for each in spawns if each.agent == name and each.launch > 1} for name in AGENTS}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_fleet_on_a_real_problem(tmp_path):
    run = Run(EXAMPLE, tmp_path / "runs", OVERRIDES)
    try:
        run.supervise()

        def all_received() -> bool:
            names = {name for event in run.events("heartbeat") for name in event["text"].split(" (")[0].split(", ")}
            return {"reflect", "consolidate", "redirect", "checkpoint"} <= names

        wait_until(all_received, 400, "every kind of heartbeat")  # four that compute, on a part of a core
        shared = run.layout.shared
        wait_until(lambda: any(each.kind == "synthesis" for each in list_notes(shared)), what="a synthesis")
        wait_until(lambda: any("ceiling-of" in each.name for each in list_notes(shared)), what="a change of direction")
        wait_until(lambda: any("HEARTBEAT_OK" in said(run, name) for name in AGENTS), what="a report on the checklist")
        wait_until(lambda: list_skills(shared), what="a skill")
        wait_until(lambda: loaded_from_another(run), what="a skill that another agent goes by")
        run.stop()
        assert run.left() == []

        fleet, attempts = run.fleet(), run.attempts()
        best = max(each.score for each in attempts if each.score is not None)
        assert best > 2.2
        notes = [each for each in list_notes(shared) if each.kind == "note"]
        numbers = {each.number for each in attempts}
        assert notes
        assert all(set(each.attempts) <= numbers | {0} for each in notes if each.attempts)
        ceilings = [each for each in notes if "ceiling-of" in each.name]
        assert ceilings
        assert all(each.attempts and set(each.attempts) <= numbers for each in ceilings)
        # Interrupted and resumed into the same conversation: several launches, one session each.
        for name in AGENTS:
            assert fleet.agents[name].launch >= 2
            assert fleet.agents[name].session
        assert sessions(run) == {name: {fleet.agents[name].session} for name in AGENTS}
        assert {each["text"].split(": ")[1] for each in run.events("exited")} <= {"interrupted", "clean"}

        run.supervise()
        run.wait_for_attempts(len(attempts) + 2)
        run.stop()
        assert sessions(run) == {name: {fleet.agents[name].session} for name in AGENTS}
        assert run.left() == []
    finally:
        run.end()
