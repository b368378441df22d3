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
