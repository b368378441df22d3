"""The whole thing on a real problem: a fleet of native agents packs circles, learns, is stopped, and goes on."""

from pathlib import Path

import pytest
from real_runs import Run, wait_until

from workspace.knowledge import list_notes, list_skills

EXAMPLE = Path(__file__).parent.parent / "examples" / "circle_packing"
AGENTS = [f"agent-{number}" for number in range(1, 5)]
OVERRIDES = (
    "agents.count=4",
    "agents.options={seconds: 0.7}",
    "grader.slots=2",
    "run.max_defer=1",
    "heartbeats=[{name: redirect, stagnant: 2}, {name: checkpoint, seconds: 6}, {name: consolidate, every: 6}]",
)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_fleet_on_a_real_problem(tmp_path):
    run = Run(EXAMPLE, tmp_path / "runs", OVERRIDES)
    try:
        run.supervise()

        def all_received() -> bool:
            names = {name for event in run.events("heartbeat") for name in event["text"].split(" (")[0].split(", ")}
            return {"reflect", "consolidate", "redirect", "checkpoint"} <= names

        wait_until(all_received, 50, "every kind of heartbeat")
        shared = run.layout.shared
        wait_until(lambda: any(each.kind == "synthesis" for each in list_notes(shared)), 15, "a synthesis")
        wait_until(lambda: list_skills(shared), 10, "a skill")
        run.stop()
        assert run.left() == []

        fleet, attempts = run.fleet(), run.attempts()
        best = max(each.score for each in attempts if each.score is not None)
        assert best > 2.2
        notes = [each for each in list_notes(shared) if each.kind == "note"]
        numbers = {each.number for each in attempts}
        assert notes
        assert all(set(each.attempts) <= numbers | {0} for each in notes if each.attempts)
        assert any(each.attempts for each in notes)
        # Interrupted and resumed into the same conversation: several launches, one session each.
        for name in AGENTS:
            assert fleet.agents[name].launch >= 2
            assert fleet.agents[name].session
        assert {each["text"].split(": ")[1] for each in run.events("exited")} <= {"interrupted", "clean"}

        run.supervise()
        run.wait_for_attempts(len(attempts) + 2, 40)
        run.stop()
        after = run.fleet()
        assert {name: each.session for name, each in after.agents.items()} == {
            name: each.session for name, each in fleet.agents.items()
        }
        assert run.left() == []
    finally:
        run.end()
