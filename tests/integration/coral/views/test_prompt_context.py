"""What a prompt is given of a real run's folder."""

from real_runs import context_of as run_context_of
from sample import attempt

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
