"""What the supervisor puts into a clone: never through a link the agent planted, never lost, never committed."""

import contextlib
import os
from pathlib import Path

import pytest
from clones import git, instruct, make_run, plant

from workspace.clone_overlay import link_shared, mount, place, put_back
from workspace.errors import GitError
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path) -> Layout:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "AGENTS.md").symlink_to("docs/guide.md")
    return make_run(tmp_path, {"docs/guide.md": "The guide.\n"}, exclude=["CLAUDE.md", "we*rd [x]"])


def test_the_link_to_shared_knowledge_is_relative_and_made_anew(layout: Layout, clone: Path) -> None:
    link_shared(clone, layout.shared)
    assert (clone / ".shared").readlink() == Path("../../shared")
    (layout.shared / "x").write_text("x")
    assert (clone / ".shared" / "x").read_text() == "x"
    (clone / ".shared").unlink()
    (clone / ".shared").symlink_to("/etc")
    (clone / ".git" / "info" / "exclude").write_text("")
    link_shared(clone, layout.shared)
    assert (clone / ".shared").readlink() == Path("../../shared")
    assert git(clone, "status", "--short") == ""
    (clone / ".shared").unlink()
    (clone / ".shared").mkdir()
    (clone / ".shared" / "mine").write_text("kept")
    link_shared(clone, layout.shared)
    assert (clone / ".shared").readlink() == Path("../../shared")
    assert [path.read_text() for path in clone.glob(".coral-shared-*/mine")] == ["kept"]


def test_excluded_names_mean_themselves(clone: Path) -> None:
    for name in ("CLAUDE.md", "we*rd [x]", "weird x", "sub/CLAUDE.md"):
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text("x")
    assert git(clone, "ls-files", "-o", "--exclude-standard").split("\n") == ["sub/CLAUDE.md", "weird x"]


@pytest.mark.parametrize("place", [".git", ".git/index"])
def test_the_index_is_not_written_through_a_link(layout: Layout, clone: Path, tmp_path: Path, place: str) -> None:
    """An agent may lay one there, and the operator moves it to another program, or renews its instructions."""
    (clone / place).rename(tmp_path / "elsewhere")
    (clone / place).symlink_to(tmp_path / "elsewhere")
    before = (clone / ".git" / "index").read_bytes()
    with contextlib.suppress(OSError):  # if `.git` is one
        instruct(clone, "AGENTS.md", "Do well.\n")
    assert (clone / ".git" / "index").read_bytes() == before


def test_an_instruction_file_of_our_own(clone: Path) -> None:
    instruct(clone, "CLAUDE.md", "Do well.\n")
    instruct(clone, "CLAUDE.md", "Do better.\n")
    assert (clone / "CLAUDE.md").read_text() == "Do better.\n"
    assert git(clone, "status", "--short") == ""
    exclude = (clone / ".git" / "info" / "exclude").read_text().splitlines()
    assert len(exclude) == len(set(exclude))


def test_the_seeds_words_follow_ours_through_its_link(clone: Path) -> None:
    for text in ("Do well.\n", "Do better.\n"):
        instruct(clone, "AGENTS.md", text)
    assert (clone / "AGENTS.md").read_text() == "Do better.\n\n---\n\nThe guide.\n"
    assert (clone / "docs" / "guide.md").read_text() == "The guide.\n"
    assert git(clone, "status", "--short") == ""


@pytest.mark.parametrize("filename", ["CLAUDE.md", "AGENTS.md"])
def test_instructions_are_put_back_without_git_and_past_whatever_was_planted(clone, filename, monkeypatch) -> None:
    given = instruct(clone, filename, "Do well.\n")
    before = (clone / filename).read_text()
    (clone / filename).unlink()
    for name in ("info/exclude", "info/coral", "config"):
        (clone / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(clone / ".git" / name)
    monkeypatch.setenv("PATH", "")  # no git is found
    put_back(clone, filename, given)
    assert (clone / filename).read_text() == before
    assert given.tracked == (filename == "AGENTS.md")
    kept = clone / ".git" / "info" / ("coral" if given.tracked else "exclude")
    assert filename in kept.read_text()


def test_an_instruction_file_in_a_folder(clone: Path) -> None:
    instruct(clone, ".tool/rules.md", "Do well.\n")
    assert (clone / ".tool" / "rules.md").read_text() == "Do well.\n"
    assert git(clone, "status", "--short") == ""


def test_planted_links_are_not_written_through(clone: Path, tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    (clone / "CLAUDE.md").symlink_to(outside / "precious")
    instruct(clone, "CLAUDE.md", "Do well.\n")
    assert (outside / "precious").read_text() == "precious"
    assert not (clone / "CLAUDE.md").is_symlink()
    (clone / "folder").symlink_to(outside)
    with pytest.raises(GitError, match="leads elsewhere"):
        place(clone, "folder/precious", "x")
    with pytest.raises(GitError, match="leads elsewhere"):
        place(clone, "folder/deep/down", "x")
    assert [path.read_text() for path in outside.iterdir()] == ["precious"]


def test_nothing_that_the_agent_planted_is_run(layout: Layout, clone: Path, tmp_path) -> None:
    touched = tmp_path / "touched"
    plant(clone, touched)
    (clone / ".gitattributes").write_text("* filter=x\n")
    touched.unlink(missing_ok=True)
    instruct(clone, "AGENTS.md", "Do well.\n")
    link_shared(clone, layout.shared)
    assert not touched.exists()


def test_a_lock_that_a_killed_agent_left_is_no_obstacle(clone: Path) -> None:
    (clone / ".git" / "index.lock").write_text("")
    instruct(clone, "AGENTS.md", "Do well.\n")
    assert git(clone, "status", "--short") == ""


def test_a_half_written_file_is_never_committed(clone: Path) -> None:
    (clone / ".coral-0123").write_text("half")
    assert git(clone, "status", "--short") == ""


def test_what_is_excluded_already_is_not_written_again(layout: Layout, clone: Path) -> None:
    link_shared(clone, layout.shared)
    before = (clone / ".git" / "info" / "exclude").stat()
    link_shared(clone, layout.shared)
    assert (clone / ".git" / "info" / "exclude").stat().st_ino == before.st_ino


def test_a_link_that_is_laid_at_the_last_moment_is_not_written_through(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent replaces the folder between the look at it and the writing."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (clone / "folder").mkdir()
    resolve = Path.resolve

    def looked_at(path: Path) -> Path:
        found = resolve(path)
        if path == clone / "folder":
            path.rmdir()
            path.symlink_to(outside)
        return found

    monkeypatch.setattr(Path, "resolve", looked_at)
    with pytest.raises(OSError, match="folder"):
        place(clone, "folder/file", "x")
    (clone / "folder").unlink()
    (clone / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        mount(clone, "folder/link", tmp_path)
    assert list(outside.iterdir()) == []


def test_a_folder_of_the_seed_may_be_a_link_within_it(clone: Path) -> None:
    (clone / "real").mkdir()
    (clone / "folder").symlink_to("real")
    place(clone, "folder/file", "x")
    assert (clone / "real" / "file").read_text() == "x"
