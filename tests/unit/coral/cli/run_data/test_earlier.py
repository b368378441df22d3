"""What a run has learned is published, and brought into a new run, where it is no evidence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sample import make_run, stamp

from coral.cli.run_data.earlier import bring_in, of_run, read
from coral.errors import CoralError
from workspace import knowledge
from workspace.knowledge import list_skills
from workspace.layout import Layout
from workspace.notes import earlier_notes, find_notes

Shown = Callable[..., str]


@pytest.fixture
def run(layout: Layout) -> Layout:
    """A run with a synthesis, a right and a wrong note, dead ends and skills."""
    notes: dict[str, tuple[dict[str, object], str]] = {
        "s-old": ({"kind": "synthesis", "attempts": [1]}, "old"),
        "s-new": ({"kind": "synthesis", "attempts": [4]}, "## Conclusions\n\n- #0 to #1, +0.5; see a#1 and x/#2\n"),
        "right": ({"attempts": [1], "title": "Right (#0 to #1, +0.5)", "about": ["row"]}, "#0 to #1, +0.5"),
        "wrong": ({"attempts": [1]}, "#0 to #1, +9"),
        "prose": ({"attempts": [1]}, "I feel so"),
        "replaced": ({"attempts": [1], "superseded_by": "right"}, "#0 to #1, +0.5"),
        "end": ({"kind": "dead-end", "about": ["comb"], "attempts": [3]}, "x"),
        "end-there": ({"kind": "dead-end", "about": ["shake", "#3"], "attempts": [3]}, "x"),
    }
    for number, (name, (front, body)) in enumerate(notes.items()):
        head = {"title": name, "created": stamp(500 - number), "author": "agent-1", **front}
        knowledge.write_note(layout.shared, name, head, body)  # type: ignore[arg-type]  # plain values
    path = knowledge.write_skill(layout.shared, "polish", {"description": "as in #4", "author": "agent-1"}, "See #4.")
    (path.parent / "test.sh").write_text("true\n")
    knowledge.write_skill(layout.shared, "search", {"form": "x/1", "description": "of programs"}, "x")
    return layout


def new_run(tmp_path: Path) -> Layout:
    return make_run(tmp_path / "later")


def test_only_what_holds_is_left_to_others(run: Layout) -> None:
    found = of_run(run)
    assert [note.name for note in found.notes] == ["s-new", "end-there", "end", "right"]
    assert [skill.name for skill in found.skills] == ["polish"]


def test_it_never_counts_as_evidence_in_a_new_run(run: Layout, shown: Shown, tmp_path: Path) -> None:
    later = new_run(tmp_path)
    bring_in(of_run(run), later.shared)
    notes = {note.title: note for note in find_notes([later.shared])}
    assert notes.keys() == {"s-new", "end-there", "end", "Right (there#0 to there#1, +0.5)"}
    assert all(note.is_earlier and not note.attempts and not note.is_synthesis for note in notes.values())
    assert "there#0 to there#1, +0.5; see a#1 and x/#2" in notes["s-new"].body
    assert [title for title, note in notes.items() if note.is_dead_end] == ["end"]
    # Its figures happen to be true here as well.
    states = {note["title"]: note["state"] for note in json.loads(shown("notes", "--json", "--run", str(later.root)))}
    assert set(states.values()) == {"elsewhere"}
    page = shown("notes", "--run", str(later.root))
    assert "agrees with the records" not in page
    assert "(of an earlier run)" in page
    assert "none of this one, and no evidence here" in shown("notes", "--read", "1", "--run", str(later.root))
    (skill,) = list_skills(later.shared)
    assert (skill.is_earlier, skill.description, skill.body.strip()) == (True, "as in there#4", "See there#4.")
    assert (skill.path.parent / "test.sh").is_file()
    assert [note.title for note in earlier_notes(later.shared, 2)] == ["s-new", "end-there"]


def test_a_note_taken_out_of_its_place_is_compared_like_any_other(run: Layout, tmp_path: Path, shown: Shown) -> None:
    later = new_run(tmp_path)
    bring_in(of_run(run), later.shared)
    (moved,) = [note.path for note in find_notes([later.shared]) if note.title.startswith("Right")]
    moved.rename(later.shared / "notes" / "mine.md")
    (note,) = [
        note for note in json.loads(shown("notes", "--json", "--run", str(later.root))) if note["name"] == "mine"
    ]
    assert note["state"] == "unchecked"


def test_it_counts_once_a_note_of_this_run_says_so(run: Layout, tmp_path: Path, shown: Shown) -> None:
    later = new_run(tmp_path)
    bring_in(of_run(run), later.shared)
    (name,) = [note.name for note in find_notes([later.shared]) if note.title.startswith("Right")]
    knowledge.write_note(later.shared, "ours", {"attempts": [1], "supersedes": [name]}, "#0 to #1, +0.5")
    notes = {note["name"]: note for note in json.loads(shown("notes", "--json", "--run", str(later.root)))}
    assert (notes["ours"]["state"], notes[name]["superseded_by"]) == ("supported", "ours")


def test_a_run_s_knowledge_is_published_for_a_team(run: Layout, shown: Shown, tmp_path: Path) -> None:
    team = tmp_path / "team"
    said = shown("knowledge", "publish", "--to", str(team))
    assert said.startswith(f"4 notes and 1 skill in {team}/toy/{run.root.name}\n")
    (run.shared / "notes" / "end.md").unlink()
    published = json.loads(shown("knowledge", "publish", "--to", str(team), "--json"))
    assert published == {"to": f"{team}/toy/{run.root.name}", "notes": 3, "skills": 1}
    for source in (team, team / "toy", team / "toy" / run.root.name):
        (found,) = read(str(source))
        assert len(found.notes) == 3
        assert "#0 to #1, +0.5" in found.notes[0].body
        later = make_run(tmp_path / f"run-of-{source.name}")
        bring_in(found, later.shared)
        assert all(note.is_earlier for note in find_notes([later.shared]))
    assert shown("knowledge", "publish").startswith(f"3 notes and 1 skill in {tmp_path}/knowledge/toy/")
    assert f"for programs: {', '.join(published)}" in " ".join(shown("knowledge", "publish", "--help").split())
    copy = tmp_path / "kept" / "mine"
    shutil.copytree(run.root, copy, symlinks=True)
    assert f"in {team}/toy/mine\n" in shown("knowledge", "publish", "--to", str(team), "--run", str(copy))
    assert of_run(Layout(copy)).label == "toy-mine"


def test_what_cannot_be_taken_or_published_says_why(
    layout: Layout, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "it has no conclusions and no skills" in shown("knowledge", "publish", code=1)
    assert "coral knowledge publish --to FOLDER" in shown("knowledge", code=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CoralError, match="there are no notes and no skills in it"):
        read(str(tmp_path / "empty"))
    with pytest.raises(CoralError, match="nowhere"):
        read("nowhere")
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    assert "that is for the operator" in shown("knowledge", "publish", code=1)


def test_hostile_knowledge_stays_in_its_place(tmp_path: Path, layout: Layout) -> None:
    source = tmp_path / "source"
    knowledge.create(source)
    (source / "notes" / "../x\n.md".replace("/", "-")).write_text("---\ntitle: \x1b[2J\nkind: dead-end\n---\nx")
    (source / "skills" / "s").mkdir()
    (source / "skills" / "s" / "SKILL.md").write_text("---\nname: ../../../evil\n---\nx")
    (source / "skills" / "s" / "link").symlink_to(tmp_path)
    (found,) = read(str(source))
    later = new_run(tmp_path)
    before = {path for path in tmp_path.rglob("*") if later.shared not in path.parents}
    bring_in(found, later.shared)
    assert {path for path in tmp_path.rglob("*") if later.shared not in path.parents} == before
    assert list_skills(later.shared)[0].path.parent.name == "evil"
