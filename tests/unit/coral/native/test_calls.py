"""The calls: what they write, what they refuse, and a result that came while the agent was away."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from native_agent import LocalAgent
from sample import attempt

from attempts.record import Attempt
from coral.native import calls
from coral.native.calls import Remember, Search, Submit, WriteNote, WriteSkill
from coral.native.coral_command import CoralCommand
from coral.native.memory import Candidate, Redirection, Trial
from coral.native.situation import Call, CallFailed, Event, Idle, ResultReceived
from coral.native.tool_error import ToolError
from workspace.knowledge import list_skills
from workspace.notes import find_notes


def perform(agent: LocalAgent, call: Call) -> Event | None:
    return call.perform(agent.bench)


PENDING = Trial(title="try 2", family="rows", start=0, before=1.0, expected=2.0)


def test_a_note_that_cannot_be_written_is_a_failed_call(agent: LocalAgent):
    note = WriteNote(name="../x", title="t", kind="note", attempts=(), body="b")
    _, events = agent.run(lambda _, event: (note,) if isinstance(event, Idle) else (), steps=2)
    assert isinstance(events[1], CallFailed)
    assert find_notes([agent.shared]) == []


def test_a_note_carries_its_author_and_its_evidence(agent: LocalAgent):
    perform(agent, WriteNote(name="n", title="t", attempts=(4,), body="b"))
    (written,) = find_notes([agent.shared])
    assert (written.author, written.attempts, written.kind, written.claims) == ("agent-1", (4,), "note", None)


def test_what_is_remembered_stands_in_memory(agent: LocalAgent):
    redirection = Redirection(family="rows", until=3)
    perform(agent, Remember(block="plan", text="one"))
    perform(agent, Remember(block="plan", text="two", add=True, redirection=redirection, reflected=5))
    perform(agent, Remember(block="learned", text="x"))
    memory = agent.snapshots.memory
    assert (memory.blocks["plan"], memory.redirection, memory.reflected) == ("one\ntwo", redirection, 5)


def test_a_skill_is_written_or_the_call_fails(agent: LocalAgent):
    perform(agent, WriteSkill(name="s", front={"description": "d"}, body="b"))
    assert [skill.name for skill in list_skills(agent.shared)] == ["s"]
    with pytest.raises(ToolError, match="cannot write the skill"):
        perform(agent, WriteSkill(name="../s", front={}, body="b"))


def test_a_candidate_that_cannot_be_written_is_a_failed_call(agent: LocalAgent):
    candidate = Candidate(trial=PENDING, texts={"missing/p.json": "1"})
    agent.snapshots.memory = replace(agent.snapshots.memory, unsubmitted=candidate)
    with pytest.raises(ToolError, match="cannot write the candidate"):
        perform(agent, Submit(candidate=candidate))
    assert agent.snapshots.memory.unsubmitted is None


def test_an_interrupt_while_a_candidate_is_written_does_not_lose_it(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    candidate = Candidate(trial=PENDING, texts={"p.json": "1"})
    agent.snapshots.memory = replace(agent.snapshots.memory, unsubmitted=candidate)
    monkeypatch.setattr("coral.native.calls.shutil.copymode", interrupted)
    (agent.clone / "p.json").write_text("0")
    with pytest.raises(KeyboardInterrupt):
        perform(agent, Submit(candidate=candidate))
    assert agent.snapshots.memory.unsubmitted == candidate


def result(number: int, title: str, score: float) -> Callable[[CoralCommand, str], Attempt | None]:
    """What `coral` does: it takes a result as soon as it is printed."""

    def run(command: CoralCommand, *_: str) -> Attempt:
        command.take(made := attempt(number, score, title=title), ())
        return made

    return run


def test_what_was_submitted_before_an_interrupt_is_waited_for(agent: LocalAgent, monkeypatch: pytest.MonkeyPatch):
    """Before the brain is asked; the result of an earlier one means that it was not submitted, and it is then."""
    monkeypatch.setattr(CoralCommand, "wait", result(1, "try 1", 1.0))
    monkeypatch.setattr(CoralCommand, "submit", result(3, PENDING.title, 2.0))
    agent.snapshots.memory = replace(agent.snapshots.memory, pending=PENDING)
    _, events = agent.run(lambda *_: (), steps=2)
    assert [type(event) for event in events] == [ResultReceived]
    memory = agent.snapshots.memory
    assert (memory.pending, [(trial.number, trial.score) for trial in memory.trials]) == (None, [(3, 2.0)])
    monkeypatch.setattr(CoralCommand, "wait", result(4, PENDING.title, 5.0))
    agent.snapshots.memory = replace(memory, pending=PENDING)
    event = perform(agent, Submit(candidate=Candidate(trial=PENDING, texts={})))
    assert isinstance(event, ResultReceived)
    assert (event.trial.number, event.trial.score) == (4, 5.0)


def test_a_result_under_a_title_that_was_shortened_is_that_of_the_trial(
    agent: LocalAgent, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CoralCommand, "submit", result(3, "try ...", 2.0))
    perform(agent, Submit(candidate=Candidate(trial=PENDING, texts={})))
    assert list(agent.snapshots.memory.graded) == [3]


def test_searches_and_submissions_chain_and_nothing_else():
    kinds = [kind for kind in vars(calls).values() if isinstance(kind, type) and issubclass(kind, Call)]
    assert {kind for kind in kinds if kind.__dataclass_fields__["request_heartbeat"].default} == {Search, Submit}
