"""Knowledge that two sides change: one rule, and both sides have the same in the end."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from coral.cluster.knowledge_sync import (
    KnowledgeFolder,
    Merge,
    MirroredKnowledge,
    beside,
    digest,
    merge,
    take_here,
    take_there,
)


@pytest.mark.parametrize(
    ("base", "here", "there", "expected"),
    [
        ("a", "a", "b", Merge.TAKE),
        ("a", "a", None, Merge.TAKE),
        (None, None, "b", Merge.TAKE),
        ("a", "b", "b", Merge.SAME),
        ("a", None, None, Merge.SAME),
        ("a", "b", "c", Merge.BOTH),
        (None, "b", "c", Merge.BOTH),
        ("a", "b", None, Merge.KEEP),
        ("a", None, "c", Merge.TAKE),
    ],
)
def test_a_change_is_taken_where_the_run_still_has_what_was_changed(
    base: str | None, here: str | None, there: str | None, expected: Merge
) -> None:
    assert merge(base, here, there) is expected


def pair(folder: Path) -> tuple[KnowledgeFolder, KnowledgeFolder]:
    for name in ("here", "there"):
        (folder / name).mkdir(parents=True)
    return KnowledgeFolder(folder / "here"), KnowledgeFolder(folder / "there")


def exchange(here: KnowledgeFolder, there: KnowledgeFolder) -> None:
    """Until neither has anything to tell. Messages cross: each side has made its own before it gets the other's."""
    for _ in range(10):
        down, up = list(here.changed()), list(there.changed())
        for message in down:
            take_there(there, message)
        for message in up:
            take_here(here, message, "agent-1")
        if not down and not up:
            return
    raise AssertionError("they never agree")


def held(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_notes_of_both_sides_are_on_both_sides(tmp_path: Path) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "a.md").write_text("of here")
    (tmp_path / "there" / "notes").mkdir()
    (tmp_path / "there" / "notes" / "b.md").write_text("of there")
    (tmp_path / "there" / ".unfinished.tmp").write_text("x")
    exchange(here, there)
    (tmp_path / "there" / ".unfinished.tmp").unlink()
    assert held(tmp_path / "here") == held(tmp_path / "there") == {"a.md": "of here", "notes/b.md": "of there"}


def test_what_the_run_cannot_read_is_not_replaced(tmp_path: Path) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "a.md").symlink_to("/nowhere")
    (tmp_path / "here" / "b.md").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "there" / name).write_text("of there")
    exchange(here, there)
    assert ((tmp_path / "here" / "a.md").is_symlink(), (tmp_path / "here" / "b.md").is_dir()) == (True, True)
    kept = [beside(name, "agent-1", str(digest(b"of there"))) for name in ("a.md", "b.md")]
    assert held(tmp_path / "here") == dict.fromkeys(kept, "of there")


def test_of_two_changes_of_one_note_none_is_lost(tmp_path: Path) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "a.md").write_text("old")
    exchange(here, there)
    (tmp_path / "here" / "a.md").write_text("new here")
    (tmp_path / "there" / "a.md").write_text("new there")
    exchange(here, there)
    kept = beside("a.md", "agent-1", str(digest(b"new there")))
    assert held(tmp_path / "here") == held(tmp_path / "there") == {"a.md": "new here", kept: "new there"}


@pytest.mark.parametrize("name", ["../a.md", "notes/../../a.md", "/tmp/a.md"])
def test_a_node_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    here, _ = pair(tmp_path)
    with pytest.raises(ValueError, match="is no path of the mirror"):
        take_here(here, {"knowledge": name, "data": b"x", "base": None}, "agent-1")
    assert {path.name for path in tmp_path.rglob("*")} == {"here", "there"}


def test_a_link_is_no_knowledge(tmp_path: Path) -> None:
    here, _ = pair(tmp_path)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "here" / "a.md").symlink_to(tmp_path / "secret")
    assert list(here.changed()) == []


SIDES, NAMES = st.sampled_from(["here", "there"]), st.sampled_from(["a.md", "n/b.md"])
CHANGES = st.tuples(SIDES, NAMES, st.sampled_from(["1", "22", "333", None]))


@given(st.lists(st.lists(CHANGES, max_size=4), max_size=4))
def test_whatever_both_sides_do_they_agree_and_the_last_words_are_there(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str, str | None]]]
) -> None:
    folder = tmp_path_factory.mktemp("sides")
    here, there = pair(folder)
    for changes in rounds:
        before = held(folder / "here")
        for side, name, text in changes:
            path = folder / side / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        new = [
            text for side in ("here", "there") for name, text in held(folder / side).items() if before.get(name) != text
        ]
        exchange(here, there)
        assert held(folder / "here") == held(folder / "there")
        assert set(new) <= set(held(folder / "here").values())


def test_what_cannot_be_taken_over_is_not_removed_from_the_node(tmp_path: Path) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "notes").write_text("a file")
    (tmp_path / "there" / "notes").mkdir()
    (tmp_path / "there" / "notes" / "a.md").write_text("of there")
    (message,) = there.changed()
    with pytest.raises(NotADirectoryError, match="notes"):
        take_here(here, message, "agent-1")
    assert [change["knowledge"] for change in here.changed()] == ["notes"]


def test_a_note_that_became_too_large_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "a.md").write_text("small")
    exchange(here, there)
    monkeypatch.setattr("coral.cluster.knowledge_sync.MOST", 10)
    (tmp_path / "here" / "a.md").write_text("larger than ten bytes")
    assert here.changed() == []


def test_notes_that_cannot_be_read_are_not_removed(tmp_path: Path, unreadable: set[str]) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "notes").mkdir()
    for name in ("a.md", "notes/b.md"):
        (tmp_path / "here" / name).write_text("of here")
    exchange(here, there)
    unreadable.add("notes")
    (tmp_path / "there" / "a.md").unlink()
    assert [(one["knowledge"], one["data"]) for one in there.changed()] == [("a.md", None)]
    unreadable.clear()
    (tmp_path / "there").rename(tmp_path / "aside")
    assert there.changed() == [], "nobody has removed them one by one"
    (tmp_path / "there").symlink_to(tmp_path / "aside")
    assert there.changed() == []


def test_changes_are_all_found_before_the_first_is_sent(tmp_path: Path) -> None:
    here, there = pair(tmp_path)
    (tmp_path / "here" / "a.md").write_text("of here")
    news = iter(here.changed())
    (tmp_path / "there" / "b.md").write_text("of there")
    (message,) = there.changed()
    take_here(here, message, "agent-1")
    assert [one["knowledge"] for one in news] == ["a.md"]


@pytest.mark.parametrize("text", ["[]", '{"a.md": 1}', "{", "[" * 100_000])
def test_a_spoiled_list_of_what_came_from_the_run_makes_all_of_the_node_changes(tmp_path: Path, text: str) -> None:
    folder, kept = tmp_path / "notes", tmp_path / "knowledge.json"
    folder.mkdir()
    (folder / "a.md").write_text("1")
    kept.write_text(text)
    held = MirroredKnowledge(folder, kept, goes_on=True)
    assert [message["knowledge"] for message in held.changed()] == ["a.md"]
