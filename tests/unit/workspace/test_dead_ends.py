"""Dead ends are found in the heads of notes, and met by attempts that touch everything they are about."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from workspace import dead_ends
from workspace.dead_ends import find_dead_ends, mentions, met_by
from workspace.knowledge import create, write_note


@pytest.fixture
def found(tmp_path: Path) -> Callable[[], list[tuple[str, str, list[str]]]]:
    create(tmp_path / "shared")
    return lambda: find_dead_ends(tmp_path / "shared", tmp_path / "kept.json")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared"


def test_a_dead_end_is_found_until_it_is_superseded(found, shared: Path) -> None:
    assert found() == []
    write_note(shared, "a/rings", {"kind": "dead-end", "title": "Rings lose", "about": ["ring", "r.py"]}, "x")
    write_note(shared, "b", {"type": "Dead end", "about": "corner"}, "x")
    write_note(shared, "about-nothing", {"kind": "dead-end"}, "x")
    write_note(shared, "other", {"kind": "note", "about": ["ring"]}, "x")
    expected = [("a/rings", "Rings lose", ["ring", "r.py"]), ("b", "b", ["corner"])]
    assert found() == expected
    assert found() == expected
    write_note(shared, "later", {"supersedes": ["b"]}, "x")
    assert found() == expected[:1]
    write_note(shared, "a/rings", {"kind": "dead-end", "about": ["ring"], "superseded_by": "later"}, "x")
    assert found() == []


def test_only_what_has_changed_is_read_again(found, shared: Path, tmp_path: Path, monkeypatch) -> None:
    for number in range(50):
        write_note(shared, f"n{number}", {"kind": "dead-end", "about": ["ring"]}, "x")
    assert len(found()) == 50
    kept = json.loads((tmp_path / "kept.json").read_text())
    (tmp_path / "kept.json").write_text(json.dumps({**kept, "until": kept["until"] + 10**11}))
    read: list[str] = []
    monkeypatch.setattr(dead_ends, "_read_note", lambda shared, name: read.append(name))
    assert len(found()) == 50
    assert read == []
    (shared / "notes" / "n7.md").unlink()
    assert len(found()) == 49


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"until": "x"}', '{"until": 1e300, "notes": {"a": 1}}', "9" * 9999])
def test_what_is_kept_may_be_anything(found, shared: Path, tmp_path: Path, kept: str) -> None:
    write_note(shared, "a", {"kind": "dead-end", "about": ["ring"]}, "x")
    (tmp_path / "kept.json").write_text(kept)
    assert [name for name, _, _ in found()] == ["a"]


def test_hostile_notes_are_left_out(found, shared: Path, tmp_path: Path) -> None:
    notes = shared / "notes"
    (notes / "binary.md").write_bytes(b"---\nkind: dead-end\nabout: [\x00\xff]\n---\n")
    os.mkfifo(notes / "pipe.md")
    (tmp_path / "outside.md").write_text("---\nkind: dead-end\nabout: [secret]\n---\n")
    (notes / "link.md").symlink_to(tmp_path / "outside.md")
    (notes / "folder.md").mkdir()
    (notes / "bomb.md").write_text("---\nkind: dead-end\nabout: [" + "x, " * 1_000_000 + "]\n---\n")
    write_note(shared, "escape", {"kind": "dead-end", "title": "\x1b[2J", "about": ["a\x1b[2Jb"]}, "x")
    assert [(name, title) for name, title, _ in found()] == [("binary", "binary"), ("escape", "[2J")]


CHANGES = (["src/net.py", "config.json"], "learning_rate = 0.3")


@pytest.mark.parametrize(
    ("about", "message", "is_met"),
    [
        (["shake"], "shake from #12", True),
        (["shake", "#12"], "shake from #12: more", True),
        (["shake", "#1"], "shake from #12", False),
        (["net.py"], "something", True),
        (["src/net.py", "Learning_Rate"], "something", True),
        (["learning"], "something", False),
        (["config.json", "momentum"], "something", False),
        (["config.json", "momentum"], "less momentum", True),
    ],
)
def test_an_attempt_meets_what_it_touches_all_of(about: list[str], message: str, is_met: bool) -> None:
    assert met_by(about, message, lambda: CHANGES) is is_met


def test_the_changes_are_asked_only_where_the_message_is_not_enough() -> None:
    def unwanted() -> tuple[list[str], str]:
        raise AssertionError

    assert met_by(["shake"], "Shake!", unwanted)


def test_words_are_named_as_a_whole() -> None:
    assert mentions("LR=0.3 in src/net.py", "lr")
    assert mentions("in src/net.py.", "src/net.py")
    assert not mentions("blr and lrs", "lr")
    assert mentions("a.c", "a.c")
    assert not mentions("abc", "a.c")
