"""Commits of attempts that somebody takes out of the hub are put back, as far as somebody has them."""

import os
import shutil
from pathlib import Path

from clones import commit, git

import workspace.pins
from workspace import intake
from workspace.hub import checkout
from workspace.layout import Layout
from workspace.loose_object import object_file
from workspace.pins import Pins, restore_seed


def test_a_reference_that_is_gone_or_altered_is_written_again(layout: Layout, clone: Path) -> None:
    seed, mine = git(clone, "rev-parse", "HEAD"), commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    reference, pins = layout.hub / "refs" / "attempts" / "1", Pins(layout)
    assert pins.restore(1, "agent-1", mine) is None
    for spoil, found in (
        (reference.unlink, "was deleted"),
        (lambda: reference.write_text(f"{seed}\n"), "was altered"),
        (lambda: (reference.unlink(), reference.mkdir()), "was deleted"),
        (lambda: (reference.unlink(), reference.symlink_to("2")), "was deleted"),
    ):
        spoil()
        assert pins.restore(1, "agent-1", mine) == (found, "its record")
        assert git(layout.hub, "rev-parse", "refs/attempts/1") == mine
        assert pins.restore(1, "agent-1", mine) is None


def test_a_commit_that_is_gone_comes_from_its_authors_clone(layout: Layout, clone: Path, tmp_path: Path) -> None:
    first, mine = commit(clone, "one"), commit(clone, "two")
    intake.take_in(layout.hub, clone, first, 1)
    intake.take_in(layout.hub, clone, mine, 2)
    for folder in (layout.hub / "objects").glob("??"):
        shutil.rmtree(folder)
    (layout.hub / "refs" / "attempts" / "2").unlink()
    pins = Pins(layout)
    assert pins.restore(2, "agent-1", mine) == ("was deleted", "the workspace of agent-1")
    assert pins.restore(1, "agent-1", first) is None, "it came with the other"
    checkout(layout.hub, mine, tmp_path / "checkout")
    assert git(layout.hub, "fsck", "--strict") == ""


def test_a_commit_that_nobody_has_is_told_of_once(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    for objects in (layout.hub / "objects", clone / ".git" / "objects"):
        object_file(objects, mine).unlink()
    pins = Pins(layout)
    assert pins.restore(1, "agent-1", mine) == ("was deleted", "")
    assert pins.restore(1, "agent-1", mine) is None


def test_the_reference_of_the_seed_is_written_again(layout: Layout, clone: Path) -> None:
    seed = git(layout.hub, "rev-parse", intake.SEED)
    mine = commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    assert not restore_seed(layout.hub, seed)
    git(layout.hub, "update-ref", intake.SEED, mine)
    assert restore_seed(layout.hub, seed)
    (layout.hub / intake.SEED).unlink()
    assert restore_seed(layout.hub, seed)
    (layout.hub / intake.SEED).unlink()
    os.mkfifo(layout.hub / intake.SEED)  # nobody waits for it
    assert restore_seed(layout.hub, seed)
    assert git(layout.hub, "rev-parse", intake.SEED) == seed


def test_files_that_are_gone_come_from_their_authors_clone(layout: Layout, clone: Path, tmp_path: Path) -> None:
    """A folder and a file in it: git names the second only once the first is back."""
    (clone / "inner").mkdir()
    (clone / "inner" / "new.txt").write_text("new")
    git(clone, "add", "inner")
    mine = commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    pins, attempts = Pins(layout), {1: ("agent-1", mine)}
    assert pins.restore_files(attempts) == {}
    for name in ("inner", "inner/new.txt"):
        object_file(layout.hub / "objects", git(clone, "rev-parse", f"{mine}:{name}")).unlink()
    assert pins.restore_files(attempts) == {1: ("was deleted", "the workspace of agent-1")}
    assert pins.restore_files(attempts) == {}
    checkout(layout.hub, mine, tmp_path / "checkout")
    assert git(layout.hub, "fsck", "--strict") == ""


def test_files_that_nobody_has_are_told_of_once_and_others_are_put_back(layout: Layout, clone: Path) -> None:
    commits = [commit(clone, text) for text in ("one", "two", "three", "four")]
    for number, one in enumerate(commits):
        intake.take_in(layout.hub, clone, one, number + 1)
    pins, attempts = Pins(layout), {number + 1: ("agent-1", one) for number, one in enumerate(commits)}
    trees = [git(clone, "rev-parse", f"{one}^{{tree}}") for one in commits]
    for tree in trees[:3]:
        object_file(layout.hub / "objects", tree).unlink()
    object_file(clone / ".git" / "objects", trees[0]).unlink()
    object_file(clone / ".git" / "objects", trees[1]).unlink()
    object_file(clone / ".git" / "objects", trees[3]).replace(object_file(clone / ".git" / "objects", trees[1]))
    for objects in (layout.hub / "objects", clone / ".git" / "objects"):
        object_file(objects, commits[3]).unlink()  # what is told of it by its commit
    lost = ("was deleted", "")
    assert pins.restore_files(attempts) == {1: lost, 2: lost, 3: ("was deleted", "the workspace of agent-1")}
    assert pins.restore_files(attempts) == {}


def test_git_is_not_asked_again_while_nothing_has_changed(layout: Layout, clone: Path, monkeypatch) -> None:
    commits = [commit(clone, text) for text in ("one", "two", "three")]
    for number, one in enumerate(commits):
        intake.take_in(layout.hub, clone, one, number)
    asked: list[list[str]] = []
    monkeypatch.setattr(workspace.pins, "missing", lambda _, commits: asked.append(commits) or [])
    pins = Pins(layout)
    for _ in range(4):
        for number, one in enumerate(commits):
            pins.restore_files({number: ("agent-1", one)})
    assert asked == [[one] for one in (*commits, commits[0])]
    git(layout.hub, "hash-object", "-w", "-t", "blob", "config")
    pins.restore_files({1: ("agent-1", commits[1])})
    assert len(asked) == 5
