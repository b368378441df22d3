"""What the brain is shown for an event, and a result that came while the agent was away."""

from dataclasses import replace

from native_agent import LocalAgent
from sample import attempt

from coral.native.calls import WriteNote
from coral.native.memory import Trial
from coral.native.prompt import HeartbeatSection
from coral.native.run_view import AgentRunView
from coral.native.situation import Call, Event, Idle, Prompted, Situation

PENDING = Trial(title="try 2", family="rows", start=0, before=1.0, expected=2.0)


def test_the_own_result_is_read_before_the_brain_is_asked(agent: LocalAgent):
    agent.snapshots.memory = replace(agent.snapshots.memory, pending=PENDING)
    agent.store.publish(attempt(2, 2.0))
    seen: list[Situation] = []

    def look(situation: Situation, event: Event) -> tuple[Call, ...]:
        seen.append(situation)
        return ()

    agent.run(look, prompt="## Heartbeat: reflect (id h1)\n\nx\n", steps=1)
    assert seen[0].memory.pending is None
    assert [(trial.number, trial.score) for trial in seen[0].memory.trials] == [(2, 2.0)]


def test_only_what_an_event_needs_is_observed(agent: LocalAgent, monkeypatch):
    WriteNote(name="n", title="t", attempts=(), body="b", claims="rows").perform(agent.bench)
    idle = agent.bench.observe(Idle())
    assert idle.notes == ()
    assert "shake" in idle.families
    agent.store.publish(attempt(1, 2.0))
    # A unit test has no git.
    monkeypatch.setattr(AgentRunView, "files", lambda _, attempt, __: {"p.json": f'{{"x": {attempt.number}.5}}'})
    asked = agent.bench.observe(Prompted(HeartbeatSection("consolidate", "h1", "")))
    assert [note.title for note in asked.notes] == ["t"]
    assert asked.change_of_best == "1 of 1 values differ; most of all x 0.5 -> 1.5"
    assert idle.change_of_best == ""
    asked = agent.bench.observe(Prompted(HeartbeatSection("redirect", "h3", "")))
    assert [note.claims for note in asked.notes] == ["rows"]  # what others have taken up
