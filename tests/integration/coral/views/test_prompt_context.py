"""What a prompt is given of a real run's folder."""

from real_runs import context_of as run_context_of
from sample import attempt

from attempts.index.index import Index
from attempts.record import Kind
from attempts.standing import Measured
from attempts.store import Store
from coral.fleet.agent_state import Agent
from coral.fleet.run_state import Fleet
from coral.views.prompt_context import context_of
from heartbeats.render import render_file
from workspace.knowledge import write_note


def test_a_prompt_is_given_the_conclusions_the_disputed_notes_and_what_others_are_at(start) -> None:
    run_context = run_context_of(start(["hang"], supervise=False).layout)
    layout = run_context.layout
    records = [attempt(number, float(number), agent="agent-2", title=f"try {number}") for number in (1, 2)]
    for record in records:
        Store(layout.attempts).publish(record)
        run_context.results.add(record)
    write_note(layout.shared, "wrong", {"title": "Wrong"}, "#1 to #2, +7.0")
    write_note(layout.shared, "old", {"title": "Old", "superseded_by": "wrong"}, "x")
    write_note(layout.shared, "claiming", {"author": "agent-2", "superseded_by": "", "claims": "rows"}, "x")
    body = "## Conclusions\n\n- rows pay: #1 to #2, +1.0\n\n## Next\n\n1. more rows"
    write_note(layout.shared, "synthesis-after-2", {"title": "S", "kind": "synthesis"}, body)
    given = context_of(run_context, Fleet(agents={"agent-1": Agent(name="agent-1")}), "agent-1", 0, 60.0)
    disputed = {note["name"]: note["disputed"] for note in given["notes"]}
    assert disputed == {"synthesis-after-2": [], "wrong": ["#1 to #2, +7.0: the records say +1"], "claiming": []}
    shown = {"name": "synthesis-after-2", "conclusions": "- rows pay: #1 to #2, +1.0", "next": "1. more rows"}
    assert given["synthesis"] == shown
    (claim,) = given["claims"]
    assert (claim["agent"], claim["gap"], claim["note"]) == ("agent-2", "rows", "claiming")
    text = render_file("consolidate", {**given, "next_step": ""})
    assert "- `wrong`: #1 to #2, +7.0: the records say +1" in text


def test_a_median_that_prompts_gave_is_not_disputed(start) -> None:
    """The median of #1 is in the index alone, that of #2 in the standing alone."""
    run_context = run_context_of(start(["hang"], supervise=False).layout)
    layout = run_context.layout
    for record in (attempt(1, 1.0), attempt(2, 4.0), attempt(3, 3.0, kind=Kind.CONFIRM, of=1)):
        Store(layout.attempts).publish(record)
    Index(layout.attempts).refresh()
    write_note(layout.shared, "right", {"title": "Right"}, "#1 scores 2; #2 scores 5; #1 to #2, +3")
    plain = {"agent": "agent-1", "commit": "", "tree": "", "parent": "", "title": ""}
    measured = {2: Measured(number=2, scores=(4.0, 6.0), **plain)}
    fleet = Fleet(agents={"agent-1": Agent(name="agent-1")}, measured=measured)
    (given,) = context_of(run_context, fleet, "agent-1", 0, 60.0)["notes"]
    assert given["disputed"] == []
