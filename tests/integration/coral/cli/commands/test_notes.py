"""The history of what the agents wrote, as `coral notes --history` shows it."""

import json

from sample import make_run

from workspace import history, knowledge


def test_the_history_of_notes(tmp_path, coral, monkeypatch) -> None:
    layout = make_run(tmp_path / "runs")
    monkeypatch.chdir(layout.root)
    assert coral("notes", "--history")[1] == "no history yet\n"
    knowledge.create(layout.shared)
    knowledge.write_note(layout.shared, "note-0", {"title": "one"}, "text")
    history.snapshot(layout.shared, layout.history, "after #4")
    assert "after #4" in coral("notes", "--history")[1]
    assert "notes/note-0.md" in json.loads(coral("notes", "--history", "--json")[1])[0]["files"]


def test_a_synthesis_that_is_written_anew_is_compared_with_what_it_said_before(tmp_path, coral, monkeypatch) -> None:
    layout = make_run(tmp_path / "runs")
    monkeypatch.chdir(layout.root)
    knowledge.create(layout.shared)
    note = layout.shared / "notes" / "synthesis.md"
    note.write_text("---\nkind: synthesis\n---\n# S\n\n- rows pay\n")
    assert "cannot compare two syntheses: there is one yet" in coral("notes", "diff")[2]
    history.snapshot(layout.shared, layout.history, "after #4")
    assert "cannot compare two syntheses: there is one yet" in coral("notes", "diff")[2]
    note.write_text("---\nkind: synthesis\n---\n# S\n\n- rings pay\n")
    history.snapshot(layout.shared, layout.history, "after #8")
    code, said, _ = coral("notes", "diff")
    assert (code, "- - rows pay" in said, "+ - rings pay" in said) == (0, True, True)
    assert json.loads(coral("notes", "diff", "--json")[1])["sections"]
