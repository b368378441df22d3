"""The tools: what they write, what they refuse, and a result that came while the agent was away."""

import json
from dataclasses import replace

import pytest
from native_agent import LocalAgent
from sample import attempt

from attempts.record import Verdict
from coral.native.coral_command import SubmissionResult
from coral.native.memory import Candidate, Redirection, Trial
from coral.native.prompt import HeartbeatSection
from coral.native.situation import (
    AwaitResult,
    Call,
    CallFailed,
    Event,
    Idle,
    Prompted,
    Redirect,
    Remember,
    Situation,
    Submit,
    WriteNote,
    WriteSkill,
)
from coral.native.tool_error import ToolError
from coral.native.toolbox import Toolbox
from workspace.knowledge import list_skills
from workspace.notes import find_notes

PENDING = Trial(title="try 2", family="rows", start=0, before=1.0, expected=2.0)


def test_a_note_that_cannot_be_written_is_a_failed_call(agent: LocalAgent):
    note = WriteNote(name="../x", title="t", kind="note", attempts=(), body="b")
    _, events = agent.run(lambda _, event: (note,) if isinstance(event, Idle) else (), steps=2)
    assert isinstance(events[1], CallFailed)
    assert find_notes([agent.shared]) == []


def test_a_note_marks_the_attempts_that_it_is_about(agent: LocalAgent):
    trial = Trial(title="t", family="rows", number=4, score=1.0, verdict="tied")
    agent.snapshots.memory = replace(agent.snapshots.memory, trials=(trial, replace(trial, number=5)))
    agent.toolbox.perform(WriteNote(name="n", title="t", kind="note", attempts=(4,), body="b", about=(4,)))
    assert [held.noted for held in agent.snapshots.memory.trials] == [True, False]
    agent.toolbox.perform(Remember(block="learned", text="no gain", add=True, about=(5,)))
    assert [held.noted for held in agent.snapshots.memory.trials] == [True, True]
    (written,) = find_notes([agent.shared])
    assert (written.author, written.attempts, written.kind, written.claims) == ("agent-1", (4,), "note", None)


def test_a_skill_is_written_or_the_call_fails(agent: LocalAgent):
    agent.toolbox.perform(WriteSkill(name="s", front={"description": "d"}, body="b"))
    assert [skill.name for skill in list_skills(agent.shared)] == ["s"]
    with pytest.raises(ToolError, match="cannot write the skill"):
        agent.toolbox.perform(WriteSkill(name="../s", front={}, body="b"))


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
    assert agent.snapshots.memory.stats["rows"].wins == 1.0


def test_a_result_takes_one_episode_off_the_redirection_and_a_void_one_none(agent: LocalAgent):
    agent.toolbox.perform(Redirect(redirection=Redirection(family="rows", episodes=3)))
    for number, score, verdict, left in ((2, None, Verdict.VOID, 3), (4, 2.0, Verdict.OWN_BEST, 2)):
        pending = replace(PENDING, title=f"try {number}")
        agent.snapshots.memory = replace(agent.snapshots.memory, pending=pending)
        agent.store.publish(attempt(number, score, verdict=verdict))
        agent.toolbox.catch_up()
        assert agent.snapshots.memory.redirection.episodes == left


def test_a_candidate_that_cannot_be_written_is_a_failed_call(agent: LocalAgent):
    candidate = Candidate(trial=PENDING, texts={"missing/p.json": "1"})
    agent.snapshots.memory = replace(agent.snapshots.memory, unsubmitted=candidate)
    with pytest.raises(ToolError, match="cannot write the candidate"):
        agent.toolbox.perform(Submit(candidate=candidate))
    assert agent.snapshots.memory.unsubmitted is None


def test_an_interrupt_while_a_candidate_is_written_does_not_lose_it(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    candidate = Candidate(trial=PENDING, texts={"p.json": "1"})
    agent.snapshots.memory = replace(agent.snapshots.memory, unsubmitted=candidate)
    monkeypatch.setattr("coral.native.toolbox.shutil.copymode", interrupted)
    (agent.toolbox.run_view.clone / "p.json").write_text("0")
    with pytest.raises(KeyboardInterrupt):
        agent.toolbox.perform(Submit(candidate=candidate))
    assert agent.snapshots.memory.unsubmitted == candidate


def test_only_what_an_event_needs_is_observed(agent: LocalAgent):
    (agent.shared / "HEARTBEAT.md").write_text("- native: look")
    agent.toolbox.perform(WriteNote(name="n", title="t", kind="note", attempts=(), body="b", claims="rows"))
    idle = agent.toolbox.observe(Idle())
    assert (idle.notes, idle.checklist, idle.has_check) == ((), "", False)
    assert "shake" in idle.families
    agent.store.publish(attempt(1, 2.0))
    agent.toolbox.run_view.cache.mkdir(parents=True)
    for number in (0, 1):  # as if their files had been read before: a unit test has no git
        (agent.toolbox.run_view.cache / f"{number}.json").write_text(json.dumps({"p.json": f'{{"x": {number}.5}}'}))
    asked = agent.toolbox.observe(
        Prompted((HeartbeatSection("consolidate", "h1", ""), HeartbeatSection("checkpoint", "h2", "")))
    )
    assert ([note.title for note in asked.notes], asked.checklist) == (["t"], "- native: look")
    assert asked.change_of_best == "1 of 1 values differ; most of all x 0.5 -> 1.5"
    assert idle.change_of_best == ""
    asked = agent.toolbox.observe(Prompted((HeartbeatSection("redirect", "h3", ""),)))
    assert [note.claims for note in asked.notes] == ["rows"]  # what others have taken up


def test_a_trial_that_was_submitted_in_the_meantime_is_not_lost(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    """The `coral eval` of a launch that was interrupted went on, and submitted what this launch submits again."""
    earlier = SubmissionResult(number=1, title="try 1", score=1.0, verdict="new best", reason="", inline=())
    waited = [earlier, replace(earlier, number=2, title=PENDING.title, score=2.0)]

    def run(arguments: list[str]) -> SubmissionResult:
        if arguments[0] == "eval":
            raise ToolError("cannot submit: nothing changed since you submitted it")
        return waited.pop(0)

    monkeypatch.setattr(Toolbox, "_run_coral", lambda _, arguments: run(arguments))
    agent.snapshots.memory = replace(agent.snapshots.memory, pending=PENDING)
    agent.toolbox.perform(AwaitResult(trial=PENDING))
    assert agent.snapshots.memory.pending is None
    assert [(trial.number, trial.score) for trial in agent.snapshots.memory.trials] == [(2, 2.0)]
    assert not waited
