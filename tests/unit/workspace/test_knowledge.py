"""Notes and skills: what is written comes back, and whatever an agent leaves in the folder is read in bounds."""

import os
import time
from pathlib import Path

import pytest
from strangers import owning

from workspace import plain_file
from workspace.clone_overlay import place
from workspace.errors import WorkspaceError
from workspace.knowledge import create, is_there, list_skills, write_note, write_skill
from workspace.notes import find_notes, recent_notes
from workspace.plain_file import read_plain, walk


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    create(tmp_path / "shared")
    return tmp_path / "shared"


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
        assert [note.body.strip() for note in find_notes([shared])] == ["kept"]


def test_what_a_link_leads_to_is_left_as_it_is(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o500)
    (shared / "skills").rmdir()
    (shared / "skills").symlink_to(tmp_path / "elsewhere")
    create(shared)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o500


def test_a_link_that_leads_out_of_the_knowledge_is_put_aside(shared: Path, tmp_path: Path) -> None:
    for name, to in (("roles", tmp_path), ("skills", shared / "notes")):
        (shared / name).rmdir()
        (shared / name).symlink_to(to)
    assert not is_there(shared)
    create(shared)
    assert is_there(shared)
    assert (shared / "skills").is_symlink()
    assert not (shared / "roles").is_symlink()
    assert [path.readlink() for path in shared.glob(".roles.*")] == [tmp_path]
    place(shared, "roles/agent-3.md", "Review.")
    assert (shared / "roles" / "agent-3.md").read_text() == "Review."


def test_a_link_to_a_closed_folder_is_put_aside(shared: Path) -> None:
    (shared / "roles").rmdir()
    (shared / "closed").mkdir(mode=0o500)
    (shared / "roles").symlink_to("closed")
    assert not is_there(shared)
    create(shared)
    assert is_there(shared)
    assert not (shared / "roles").is_symlink()


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/x", "a/../../b", ".hidden", "a\nb", "a/b/c/d", "x" * 300])
def test_names_that_lead_elsewhere_are_refused(shared: Path, name: str) -> None:
    with pytest.raises(WorkspaceError, match="cannot name"):
        write_note(shared, name, {}, "x")
    with pytest.raises(WorkspaceError, match="cannot name"):
        write_skill(shared, name, {}, "x")


def test_skills_are_listed_in_bounded_time_and_memory(shared: Path) -> None:
    """Each prompt lists them, in the supervisor's loop, and one large file may have thousands of names."""
    write_skill(shared, "a", {"description": "small"}, "x")
    (shared / "large").write_text("\n" * 131_072)
    for number in range(1000):
        (shared / "skills" / f"b{number}").mkdir()
        os.link(shared / "large", shared / "skills" / f"b{number}" / "SKILL.md")
    begun = time.process_time()
    found = list_skills(shared)
    assert time.process_time() - begun < 3
    assert found[0].description == "small"
    assert sum(len(skill.body) for skill in found) < 35_000_000


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


def test_a_walk_ends_after_so_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for outer in range(10):
        for inner in range(10):
            (tmp_path / f"a{outer}" / f"b{inner}").mkdir(parents=True)
    (tmp_path / "z.md").write_text("last")
    assert [entry.name for entry in walk(tmp_path, 3, 99)] == ["z.md"]
    monkeypatch.setattr(plain_file, "MAX_NAMES", 50)
    assert list(walk(tmp_path, 3, 99)) == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert read_plain(tmp_path / "file", 3) == b"123"
    assert read_plain(tmp_path / "link", 9, follow=True) == b"12345"
    assert [read_plain(tmp_path / name, 9) for name in ("link", "pipe", "nothing", ".")] == [None] * 4
    assert [entry.name for entry in walk(tmp_path, 3, 99)] == ["file"]
