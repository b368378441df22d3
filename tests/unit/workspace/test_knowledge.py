"""Notes and skills: what is written comes back, and whatever an agent leaves in the folder does no harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from strangers import owning

from workspace import frontmatter, notes
from workspace.errors import WorkspaceError
from workspace.knowledge import create, is_there, list_skills, write_note, write_skill
from workspace.notes import find_notes, recent_notes


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    create(folder)
    return folder


@pytest.mark.parametrize("name", [".", "notes", "roles"])
@pytest.mark.parametrize("mode", [0o000, 0o500, 0o100])
def test_a_folder_that_an_agent_closed_is_opened_again(shared: Path, name: str, mode: int) -> None:
    write_note(shared, "one", {}, "kept")
    assert is_there(shared)
    with owning(shared):
        (shared / name).chmod(mode)
        assert not is_there(shared)
        create(shared)
        assert is_there(shared)
        assert [each.body.strip() for each in find_notes([shared])] == ["kept"]


def test_what_a_link_leads_to_is_left_as_it_is(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o500)
    (shared / "skills").rmdir()
    (shared / "skills").symlink_to(tmp_path / "elsewhere")
    create(shared)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o500


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.one_of(TEXT, st.integers(), st.booleans(), st.none(), st.lists(TEXT, max_size=4))
FRONTS = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), VALUES, max_size=5)


@pytest.mark.slow
@given(front=FRONTS, body=TEXT)
def test_a_head_is_yaml_that_any_reader_understands(front: dict[str, object], body: str) -> None:
    text = frontmatter.write(front, body)  # type: ignore[arg-type]
    head = text.removeprefix("---\n").partition("\n---\n")[0] if front else ""
    read = YAML(typ="safe", pure=True).load(head) or {}
    assert read == front
    mine, rest = frontmatter.split(text)
    assert rest.strip("\n") == body.strip().strip("\n") or not body.strip()
    for key, value in front.items():
        if isinstance(value, str | list):
            assert mine[key] == value


@given(text=st.text(max_size=200), head=st.text(alphabet="-: \n\"'[]|>#ab,\\", max_size=80))
def test_reading_a_head_never_fails(text: str, head: str) -> None:
    for content in (text, f"---\n{text}", f"---\n{head}\n---\n{text}"):
        front, body = frontmatter.split(content)
        assert isinstance(body, str)
        assert all(isinstance(frontmatter.words(value), str) for value in front.values())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("k: plain words", "plain words"),
        ("k: why #17 won  # a remark", "why #17 won"),
        ("k: 'it''s'", "it's"),
        ('k: "a: \\"b\\""', 'a: "b"'),
        ("k: [3, '#17', \"x, y\"]", ["3", "#17", "x, y"]),
        ("k:\n  - 3\n  - 17", ["3", "17"]),
        ("k:\n- 3\n- 17", ["3", "17"]),
        ("k: >\n  folded\n  text", "folded text"),
        ("k: |-\n  one\n  two", "one\ntwo"),
        ("k: goes\n  on", "goes on"),
        ("K:", ""),
        ('k: "never closed', "never closed"),
    ],
)
def test_heads_as_people_write_them(line: str, value: str | list[str]) -> None:
    assert frontmatter.split(f"---\n{line}\nother: x\n---\nbody") == ({"k": value, "other": "x"}, "body")


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


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/x", "a/../../b", ".hidden", "a\nb", "a/b/c/d", "x" * 300])
def test_names_that_lead_elsewhere_are_refused(shared: Path, name: str) -> None:
    with pytest.raises(WorkspaceError, match="cannot name"):
        write_note(shared, name, {}, "x")
    with pytest.raises(WorkspaceError, match="cannot name"):
        write_skill(shared, name, {}, "x")


def test_skills_are_folders_with_a_description(shared: Path) -> None:
    path = write_skill(
        shared, "polish", {"description": "Refine: what is there", "author": "agent-2"}, "# Polish\n\nDo."
    )
    (shared / "skills" / "raw").mkdir()
    (shared / "skills" / "raw" / "SKILL.md").write_text("# Raw\n\nUse it raw.\n")
    (shared / "skills" / "empty").mkdir()
    (shared / "skills" / "polish" / "extra.md").write_text("not a skill")
    polish, raw = list_skills(shared)
    assert (polish.name, polish.description, polish.author, polish.path) == (
        "polish", "Refine: what is there", "agent-2", path,
    )  # fmt: skip
    assert (raw.name, raw.description) == ("raw", "Use it raw.")


def test_whatever_lies_in_the_folder_does_no_harm(shared: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# hidden answers")
    notes = shared / "notes"
    (notes / "link.md").symlink_to(secret)
    (notes / "folder").symlink_to(tmp_path)
    (notes / "dangling.md").symlink_to("nowhere")
    (notes / "binary.md").write_bytes(b"\x00\xff" * 100)
    (notes / "latin.md").write_bytes("# Gr\xfc\xdfe".encode("latin-1"))
    (notes / "huge.md").write_bytes(b"# huge\n" + b"x" * 5_000_000)
    (notes / "open.md").write_text('---\ntitle: "no end\nauthor: [')
    (notes / "deep.md").write_text("---\n" + "a: " + "[" * 5000 + "\n---\n")
    (notes / "times.md").write_text("---\ncreated: 9999-99-99\nattempts: [1e99, -3, '#" + "9" * 50 + "']\n---\n")
    (notes / "limits.md").write_text("---\ncreated: 0001-01-01T00:00:00+23:59\n---\n")
    (notes / "a\nb\x1b[31m.md").write_text("x")
    os.mkfifo(notes / "pipe.md")
    (notes / "folder.md").mkdir()
    (notes / ".hidden.md").write_text("x")
    os.close(os.open(os.fsencode(notes) + b"/\xff\xfe.md", os.O_CREAT | os.O_WRONLY))
    found = find_notes([shared])
    assert len(found) == 8
    assert "hidden answers" not in "".join(note.body for note in found)
    assert all(note.name.isprintable() and note.title.isprintable() for note in found)
    assert max(len(note.body) for note in found) < 200_000
    assert len(recent_notes(shared, 100)) == 8
    find_notes([shared], "x")
    (shared / "skills" / "bad").mkdir()
    (shared / "skills" / "bad" / "SKILL.md").write_bytes(b"\0")
    assert list_skills(shared) == []


def test_a_folder_that_is_a_link_or_absent_is_empty(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "answers.md").write_text("x")
    (shared / "notes").rmdir()
    assert find_notes([shared]) == []
    (shared / "notes").symlink_to(tmp_path / "private")
    assert find_notes([shared]) == []
    assert list_skills(tmp_path / "nowhere") == []


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


def test_what_a_head_says_by_escapes_is_found(shared: Path) -> None:
    path = shared / "notes" / "a.md"
    path.write_text("---\ntitle: \"caf\\u00e9\"\nkind: 'don''t'\n---\nbody")
    assert [note.title for note in find_notes([shared], "café don't BODY")] == ["café"]
    assert find_notes([shared], "cafe") == []


@pytest.mark.slow
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
