"""The history of shared knowledge: what changed is kept, nothing of the agents' is run, damage is survived."""

import os
import shutil
from pathlib import Path

import pytest
from clones import git, plant

from workspace import history as history_module
from workspace.errors import GitError
from workspace.git import Git
from workspace.history import history, snapshot
from workspace.knowledge import create, write_note


@pytest.fixture
def shared(tmp_path) -> Path:
    folder = tmp_path / "shared"
    create(folder)
    write_note(folder, "one", {"created": "2026-01-01"}, "one")
    return folder


def history_of(shared: Path) -> Path:
    return shared.with_name("history.git")


def tracked(shared: Path) -> list[str]:
    return git(history_of(shared), "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "main").split("\n")


def test_each_snapshot_holds_what_is_there(shared: Path) -> None:
    first = snapshot(shared, history_of(shared), "first\nand more")
    assert tracked(shared) == ["notes/one.md"]
    write_note(shared, "ünder/two words", {}, "two")
    (shared / "notes" / "one.md").write_text("changed")
    second = snapshot(shared, history_of(shared), "second")
    (shared / "notes" / "one.md").unlink()
    (shared / "roles").rmdir()
    (shared / "roles").write_text("a file in the place of a folder")
    third = snapshot(shared, history_of(shared), "third")
    assert tracked(shared) == ["notes/ünder/two words.md", "roles"]
    assert git(history_of(shared), "show", f"{second}:notes/one.md") == "changed"
    assert git(history_of(shared), "fsck") == ""
    changes = history(history_of(shared))
    assert [(change.commit, change.message) for change in changes] == [
        (third, "third"), (second, "second"), (first, "first and more"),
    ]  # fmt: skip
    assert changes[1].files == ("notes/one.md", "notes/ünder/two words.md")
    assert changes[0].at.startswith("20")
    assert [change.message for change in history(history_of(shared), 1)] == ["third"]


def test_nothing_changed_costs_no_process(shared: Path, monkeypatch) -> None:
    assert snapshot(shared, history_of(shared), "first")
    monkeypatch.setenv("PATH", "/nowhere")
    assert snapshot(shared, history_of(shared), "again") == ""
    os.utime(shared / "notes" / "one.md", (1, 1))
    assert snapshot(shared, history_of(shared), "touched") == ""
    (shared / "notes" / "one.md").write_text("changed")
    with pytest.raises(GitError, match="cannot find the program git"):
        snapshot(shared, history_of(shared), "changed")
    assert not list(shared.parent.glob("history.git.broken*"))


def test_large_changes_are_kept_over_several_snapshots(shared: Path, monkeypatch) -> None:
    monkeypatch.setattr(history_module, "_AT_ONCE", 2_500)
    for name in "abcd":
        (shared / f"{name}.md").write_text(name * 1_000)
    assert snapshot(shared, history_of(shared), "first")
    assert tracked(shared) == ["a.md", "b.md", "notes/one.md"]
    (shared / "a.md").write_text("A" * 1_000)
    assert snapshot(shared, history_of(shared), "second")
    assert tracked(shared) == ["a.md", "b.md", "c.md", "notes/one.md"]
    assert git(history_of(shared), "show", "main:a.md") == "A" * 1_000
    assert snapshot(shared, history_of(shared), "third")
    assert tracked(shared) == ["a.md", "b.md", "c.md", "d.md", "notes/one.md"]
    assert snapshot(shared, history_of(shared), "fourth") == ""
    assert git(history_of(shared), "fsck") == ""


def test_an_empty_folder_and_one_that_is_absent(tmp_path) -> None:
    assert history(tmp_path) == []
    repository = tmp_path / "history.git"
    assert snapshot(tmp_path / "nowhere", repository, "x") == ""
    create(tmp_path / "new")
    snapshot(tmp_path / "new", repository, "empty")
    assert snapshot(tmp_path / "new", repository, "still empty") == ""


def test_links_hidden_and_large_files_stay_out(shared: Path, tmp_path) -> None:
    (tmp_path / "secret").write_text("hidden")
    (shared / "notes" / "link.md").symlink_to(tmp_path / "secret")
    (shared / "notes" / "folder").symlink_to(tmp_path)
    (shared / "notes" / ".hidden").write_text("x")
    (shared / "notes" / "large").write_bytes(b"x" * 1_000_001)
    (shared / "notes" / "new\nline.md").write_text("x")
    (shared / "notes" / '"quoted".md').write_text("x")
    os.mkfifo(shared / "notes" / "pipe")
    git(shared / "notes", "init", "-q", "inner")
    (shared / "notes" / "inner" / "x").write_text("x")
    snapshot(shared, history_of(shared), "first")
    assert tracked(shared) == ["notes/inner/x", "notes/one.md"]


def test_nothing_that_agents_plant_is_run(shared: Path, tmp_path) -> None:
    snapshot(shared, history_of(shared), "first")
    touched = tmp_path / "touched"
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".git").symlink_to(history_of(shared))
    plant(clone, touched)
    (shared / ".gitattributes").write_text("* filter=x diff=x\n")
    (shared / "notes" / ".gitignore").write_text("*\n")
    write_note(shared, "two", {}, "two")
    assert snapshot(shared, history_of(shared), "second")
    assert history(history_of(shared))[0].files == ("notes/two.md",)
    assert not touched.exists()


def _damage(repository: Path, how: str) -> None:
    if how == "no objects":
        shutil.rmtree(repository / "objects")
        (repository / "objects").mkdir()
    elif how == "bad configuration":
        (repository / "config").write_text("[core\n")
    elif how == "link":
        elsewhere = repository.parent / "elsewhere"
        repository.rename(elsewhere)
        (elsewhere / "coral-state.json").unlink()
        repository.symlink_to(elsewhere)
    else:
        shutil.rmtree(repository)
        if how == "file":
            repository.write_text("gitdir: /nowhere\n")


@pytest.mark.parametrize("how", ["no objects", "bad configuration", "link", "file", "gone"])
def test_a_damaged_repository_is_begun_anew(shared: Path, how: str) -> None:
    snapshot(shared, history_of(shared), "first")
    _damage(history_of(shared), how)
    write_note(shared, "two", {}, "two")
    assert snapshot(shared, history_of(shared), "second")
    assert tracked(shared) == ["notes/one.md", "notes/two.md"]
    assert history(history_of(shared))[0].message == "second"


@pytest.mark.parametrize(
    "state", [None, "", "pipe", "[1]", "[" * 100_000, '{"notes/one.md": 3}', '{"x": [[1, 2, 3], "y"]}']
)
def test_a_lost_or_wrong_state_costs_only_work(shared: Path, state: str | None) -> None:
    first = snapshot(shared, history_of(shared), "first")
    path = history_of(shared) / "coral-state.json"
    path.unlink()
    if state == "pipe":
        os.mkfifo(path)
    elif state is not None:
        path.write_text(state)
    write_note(shared, "two", {}, "two")
    second = snapshot(shared, history_of(shared), "second")
    assert tracked(shared) == ["notes/one.md", "notes/two.md"]
    assert git(history_of(shared), "rev-parse", "main~") == first
    assert git(history_of(shared), "rev-parse", "main") == second


def test_a_file_that_went_while_the_state_was_lost_is_gone(shared: Path) -> None:
    snapshot(shared, history_of(shared), "first")
    (history_of(shared) / "coral-state.json").unlink()
    (shared / "notes" / "one.md").unlink()
    write_note(shared, "two", {}, "two")
    snapshot(shared, history_of(shared), "second")
    assert tracked(shared) == ["notes/two.md"]


def test_a_failure_that_is_not_the_repositorys_keeps_it(shared: Path) -> None:
    snapshot(shared, history_of(shared), "first")
    # A folder in the place of the branch's lock: git cannot write, and the repository is sound.
    (history_of(shared) / "refs" / "heads" / "main.lock").mkdir()
    (history_of(shared) / "refs" / "heads" / "main.lock" / "x").write_text("")
    write_note(shared, "two", {}, "two")
    with pytest.raises((GitError, OSError)):
        snapshot(shared, history_of(shared), "second")
    assert not list(shared.parent.glob("history.git.broken*"))
    assert Git(history_of(shared)).text("rev-parse", "main")
