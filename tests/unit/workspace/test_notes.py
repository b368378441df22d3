"""Notes are listed, numbered and searched."""

import os
from pathlib import Path

import pytest

from workspace import frontmatter, notes
from workspace.knowledge import create, write_note
from workspace.notes import (
    find_notes,
    find_raw_notes,
    latest_synthesis,
    recent_notes,
    related_notes,
    superseded,
)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    create(tmp_path)
    return tmp_path


def test_a_note_comes_back_as_it_was_written(shared: Path) -> None:
    front = {"title": 'Why "#17" won: a\nstory', "author": "agent-1", "attempts": [3, 17], "kind": "observation"}
    path = write_note(shared, "agent-1/why", front, "# Heading\n\nBecause.")
    (note,) = find_notes([shared])
    assert path == note.path == shared / "notes" / "agent-1" / "why.md"
    assert (note.name, note.title, note.author) == ("agent-1/why", 'Why "#17" won: a story', "agent-1")
    assert (note.attempts, note.kind, note.number) == ((3, 17), "observation", 1)
    assert note.body.strip() == "# Heading\n\nBecause."
    assert note.created.endswith("Z")
    assert [entry.name for entry in path.parent.iterdir()] == ["why.md"]


def test_notes_are_numbered_oldest_first(shared: Path) -> None:
    write_note(shared, "late", {"created": "2026-01-02T00:00:00+01:00"}, "x")
    write_note(shared, "early", {"created": "2026-01-01T23:30:00Z"}, "x")
    write_note(shared, "first", {"created": "2026-01-01"}, "x")
    assert [(note.number, note.name) for note in find_notes([shared])] == [(1, "first"), (2, "late"), (3, "early")]
    assert find_notes([shared])[1].created == "2026-01-01T23:00:00.000Z"


def test_the_newest_notes_without_the_rest(shared: Path) -> None:
    for number in range(5):
        path = write_note(shared, f"n{number}", {"created": f"2026-01-0{number + 1}"}, "x")
        os.utime(path, (number, number))
    assert [note.name for note in recent_notes(shared, 2)] == ["n4", "n3"]
    assert recent_notes(shared, 0) == []


def test_a_note_without_a_head_has_a_title_and_a_time(shared: Path) -> None:
    path = shared / "notes" / "plain.md"
    path.write_text("Some words.\n\n## What I saw\n\nMore.")
    os.utime(path, (0, 0))
    (note,) = find_notes([shared])
    assert (note.title, note.created, note.author) == ("What I saw", "1970-01-01T00:00:00.000Z", "")


def test_search_wants_every_word_wherever_it_is(shared: Path) -> None:
    write_note(shared, "a", {"created": "2026-01-01", "author": "agent-1"}, "Hexagonal packing FAILS at the border")
    write_note(shared, "b", {"created": "2026-01-02"}, "Border circles")
    assert [note.number for note in find_notes([shared], "border")] == [1, 2]
    assert [note.number for note in find_notes([shared], "fails AGENT-1 border")] == [1]
    assert find_notes([shared], "nothing like it") == []
    assert len(find_notes([shared], "  ")) == 2
    path = shared / "notes" / "a.md"
    path.write_text("---\ntitle: \"caf\\u00e9\"\nkind: 'don''t'\n---\nbody")
    assert [note.title for note in find_notes([shared], "café don't BODY")] == ["café"]
    assert find_notes([shared], "cafe") == []


@pytest.mark.parametrize(
    "head",
    [
        'created: "2026-01-02T03:04:05.678Z"',
        "created: 2026-01-02T03:04:05.678Z",
        "created: 2026-01-02T03:04:05.678Z\ncreated: 2026-01-01",
        "CREATED: 2026-01-01\ncreated: 2026-01-02T03:04:05.678Z",
        "created: 2026-13-02T03:04:05.678Z",
        "created: yesterday",
        "created:\n  2026-01-01",
        "kind: |\n  created: 2026-01-02T03:04:05.678Z",
        "note: created: 2026-01-02T03:04:05.678Z",
    ],
)
def test_the_time_of_a_note_is_what_its_whole_head_says(shared: Path, head: str) -> None:
    path = shared / "notes" / "a.md"
    path.write_text(f"---\n{head}\n---\n\nbody\n---\ncreated: 1999-01-01T00:00:00.000Z\n")
    os.utime(path, (0, 0))
    front, _ = frontmatter.split(path.read_text())
    (note,) = find_notes([shared])
    assert note.created == (notes._moment(frontmatter.words(front.get("created"))) or "1970-01-01T00:00:00.000Z")


def test_more_than_some_thousand_notes_are_all_there(shared: Path) -> None:
    for number in range(3000):
        (shared / "notes" / f"n{number}.md").write_text(f"number {number} of many")
    assert len(find_notes([shared])) == 3000
    assert [note.name for note in find_notes([shared], "2999")] == ["n2999"]


def test_reading_ends_where_it_would_fill_the_memory(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_IN_ALL", 100)
    for number in range(9):
        (shared / "notes" / f"n{number}.md").write_text("x" * 40)
    assert len(find_notes([shared])) == 3


def test_the_latest_synthesis_among_notes_and_its_sections(shared: Path) -> None:
    assert latest_synthesis(shared) is None
    body = "# S\n\nBefore.\n\n## Conclusions\n\n- rows pay (#3)\n\n### Detail\n\nx\n\n## next \n\n1. rows\n"
    for place, (name, kind) in enumerate([("a", "synthesis"), ("b", "synthesis"), ("c", "note"), ("synthesis-9", "")]):
        front = {"kind": kind} if kind else {}
        os.utime(write_note(shared, name, front, body + name), (place, place))
    note = latest_synthesis(shared)
    assert note is not None
    assert note.name == "synthesis-9"
    assert note.section("Conclusions") == "- rows pay (#3)"
    assert note.section("Next") == "1. rows\nsynthesis-9"
    assert note.section("Gaps") == ""
    note.path.unlink()
    found = latest_synthesis(shared)
    assert found is not None
    assert found.name == "b"


def test_a_note_says_which_one_took_its_place(shared: Path) -> None:
    write_note(shared, "old", {"superseded_by": "new\nname"}, "x")
    (note,) = find_notes([shared])
    assert note.superseded_by == "new name"


def test_sections_of_a_note_full_of_spaces_are_found_at_once(shared: Path) -> None:
    write_note(shared, "spaces", {}, "# " + " " * 100_000 + "x\n## Next\nrows")
    (note,) = find_notes([shared])
    assert note.section("next") == "rows"


def test_the_head_of_a_note_says_what_it_is_about_and_what_it_replaces(shared: Path) -> None:
    head = (
        "about: [solver.py, learning rate]\nconfidence: high\nsupersedes: old.md\ncontradicts: [a, b]\ndecided_by: 17"
    )
    (shared / "notes" / "n.md").write_text(f"---\n{head}\nkind: dead-end\n---\n\nx")
    (note,) = find_notes([shared])
    assert (note.about, note.confidence) == (("solver.py", "learning rate"), "high")
    assert (note.supersedes, note.contradicts, note.decided_by) == (("old",), ("a", "b"), (17,))
    assert note.is_dead_end


def test_a_head_that_is_a_bomb_says_little(shared: Path) -> None:
    many = ", ".join(f"x{number}" for number in range(3000))
    (shared / "notes" / "n.md").write_text(
        f"---\nabout: [{many}]\nattempts: [{many}]\nsupersedes: \x1b[2J{many}\n---\nx"
    )
    (note,) = find_notes([shared])
    assert (len(note.about), len(note.attempts), len(note.supersedes)) == (100, 100, 100)
    assert "\x1b" not in note.supersedes[0]


def test_only_a_later_note_takes_the_place_of_an_earlier_one(shared: Path) -> None:
    write_note(shared, "first", {"created": "2026-01-01", "supersedes": ["second", "first"]}, "x")
    write_note(shared, "second", {"created": "2026-01-02", "supersedes": ["first", "gone"]}, "x")
    write_note(shared, "third", {"created": "2026-01-03", "superseded_by": "first"}, "x")
    raw = find_raw_notes([shared])
    related = related_notes(raw)
    assert [note.name for note in related] == ["first", "second", "third"]
    assert superseded(raw, related) == {"first": "second", "third": "first"}


def test_a_synthesis_of_an_earlier_run_is_none_of_this_one(shared: Path) -> None:
    write_note(shared, "earlier/a/synthesis", {"kind": "synthesis"}, "x")
    assert latest_synthesis(shared) is None
    assert find_notes([shared])[0].is_earlier
