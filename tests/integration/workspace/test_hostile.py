"""Commits made to hurt: each is taken in for what it is, or refused with a stated bound, and the hub holds no more."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

import pytest
from clones import blob, clone, commit, crafted, git, layout, objects, template

from workspace import hub, intake, submit
from workspace.errors import GitError, Unacceptable
from workspace.git import Git
from workspace.layout import Layout

__all__ = ["clone", "layout", "template"]  # fixtures

FILES = 60_000


def loose(clone: Path, kind: str, content: bytes) -> str:
    """An object as it is, whatever git thinks of it; its name."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = clone / ".git" / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole, 1))
    return name


def handed_in(clone: Path) -> str:
    """What `coral eval` commits of the files that are there; its name."""
    return submit.commit(clone, "agent-1", "large", lambda made: None).commit


def imported(path: str, content: str) -> str:
    return f"M 100644 inline {path}\ndata {len(content)}\n{content}"


def refused(layout: Layout, clone: Path, name: str, reason: str) -> None:
    before = objects(layout)
    with pytest.raises(Unacceptable, match=reason) as caught:
        intake.take_in(layout.hub, clone, name, 1)
    assert len(caught.value.reason) < 1000
    assert objects(layout) == before
    assert not list((layout.hub / "incoming").iterdir())


def test_an_object_that_speaks_as_the_disk_would_is_its_authors_fault(layout: Layout, clone: Path) -> None:
    modules = blob(clone, '[submodule "a"]\npath = a\nurl = -a: No space left on device\n')
    refused(layout, clone, crafted(clone, f"100644 blob {modules}\t.gitmodules"), "No space left on device")


@pytest.mark.slow
def test_a_file_that_is_too_large_is_refused_with_the_bound(layout: Layout, clone: Path) -> None:
    # Cut off at the bound, whatever comes behind it.
    with (clone / "large").open("wb") as file:
        file.truncate(1 << 28)
    refused(layout, clone, handed_in(clone), "adds more than 200 MB")


@pytest.mark.slow
def test_too_many_files_are_refused_with_the_bound(layout: Layout, clone: Path) -> None:
    for number in range(25):
        folder = clone / f"part{number}"
        folder.mkdir()
        (folder / "0").touch()
        for name in range(1, 1000):  # the same file by other names, which is quicker made
            os.link(folder / "0", folder / str(name))
    refused(layout, clone, handed_in(clone), "it has more than 20,000 files")


@pytest.mark.slow
def test_too_many_contents_are_refused_before_one_is_written(layout: Layout, clone: Path) -> None:
    stream = ["commit refs/heads/large", "committer a <a@x> 1 +0000", "data 0"]
    stream += [imported(f"part{number // 1000}/{number}", str(number)) for number in range(FILES)]
    git(clone, "fast-import", "--quiet", data="\n".join([*stream, ""]))
    refused(layout, clone, git(clone, "rev-parse", "large"), "adds 60,062 files, folders and commits; at most 50,000")


def test_more_objects_than_are_taken_in_are_refused_before_one_is_written(
    layout: Layout, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"100644 blob {blob(clone, str(number))}\t{number}" for number in range(8)]
    mine = crafted(clone, *rows)
    monkeypatch.setattr(intake, "MAX_OBJECTS", 9)
    unpacked: list[object] = []
    real = Git._start
    monkeypatch.setattr(Git, "_start", lambda *given: (unpacked.append(given[1][0]), real(*given))[1])
    refused(layout, clone, mine, "adds 10 files, folders and commits; at most 9 are taken in at once")
    assert "pack-objects" in unpacked
    assert "unpack-objects" not in unpacked
    monkeypatch.setattr(intake, "MAX_OBJECTS", 10)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_what_another_repository_holds_is_not_borrowed(layout: Layout, clone: Path, tmp_path: Path) -> None:
    """We may read what the agent may not: its alternates must not make us fetch it."""
    secret = tmp_path / "secret"
    git(tmp_path, "init", "-q", str(secret))
    hidden = blob(secret, "the answers")
    (clone / ".git" / "objects" / "info" / "alternates").write_text(f"{secret}/.git/objects\n")
    refused(layout, clone, crafted(clone, f"100644 blob {hidden}\tanswers"), "cannot be read")
    assert git(clone, "cat-file", "-p", hidden) == "the answers"


def test_alternates_in_a_circle_are_no_obstacle(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    (clone / ".git" / "objects" / "info" / "alternates").write_text(f"{clone}/.git/objects\n../objects\n" * 100)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_repository_that_is_replaced_by_a_link_or_a_file_gives_what_it_has(
    layout: Layout, clone: Path, tmp_path: Path
) -> None:
    mine = commit(clone, "one")
    (clone / ".git").rename(tmp_path / "elsewhere")
    (clone / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    refused(layout, clone, mine, "has no repository any more")
    (clone / ".git").unlink()
    (clone / ".git").symlink_to(tmp_path / "elsewhere")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_repository_begun_anew_has_no_past(layout: Layout, clone: Path, tmp_path: Path) -> None:
    (clone / ".git").rename(tmp_path / "old")
    git(clone, "init", "-q")
    mine = commit(clone, "anew")
    assert intake.take_in(layout.hub, clone, mine, 1).parent == ""
    assert git(layout.hub, "fsck", "--strict") == ""


def test_a_shallow_clone_lacks_what_it_was_made_without(layout: Layout, clone: Path) -> None:
    first, mine = commit(clone, "one"), commit(clone, "two")
    (clone / ".git" / "shallow").write_text(f"{mine}\n")
    (clone / ".git" / "objects" / first[:2] / first[2:]).unlink()
    assert git(clone, "rev-list", "HEAD") == mine
    refused(layout, clone, mine, "cannot be read")


def test_a_detached_head_is_a_commit_like_any_other(layout: Layout, clone: Path) -> None:
    git(clone, "checkout", "-q", "--detach")
    mine = commit(clone, "one")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


@pytest.mark.parametrize(
    "name", [b".git", b".GIT", b".Git", b"git~1", b".git ", b".git.", b".g\xe2\x80\x8cit", b"..", b".", b"a/b", b""]
)
def test_names_that_could_lead_into_a_repository_are_refused(layout: Layout, clone: Path, name: bytes) -> None:
    inner = loose(clone, "tree", b"100644 config\0" + bytes.fromhex(blob(clone, "[core]")))
    outer = loose(clone, "tree", b"40000 " + name + b"\0" + bytes.fromhex(inner))
    about = f"tree {outer}\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\n\nx\n"
    refused(layout, clone, loose(clone, "commit", about.encode()), "cannot be read")


def test_a_link_in_the_place_of_git_modules_is_refused(layout: Layout, clone: Path) -> None:
    refused(layout, clone, crafted(clone, f"120000 blob {blob(clone, 'a.txt')}\t.gitmodules"), "cannot be read")


def test_the_same_name_twice_is_refused(layout: Layout, clone: Path) -> None:
    entry = b"100644 a\0" + bytes.fromhex(blob(clone, "x"))
    tree = loose(clone, "tree", entry + entry)
    about = f"tree {tree}\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\n\nx\n"
    refused(layout, clone, loose(clone, "commit", about.encode()), "cannot be read")


def test_names_that_differ_in_case_stay_two_files(layout: Layout, clone: Path, tmp_path: Path) -> None:
    (clone / "B.txt").write_text("large")
    (clone / "b.txt").write_text("small")
    (clone / "\U0001fab8\nnew").write_text("coral")
    (clone / os.fsdecode(b"\xff")).write_text("bytes")
    mine = commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    hub.checkout(layout.hub, mine, tmp_path / "out")
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {
        "a.txt": "one", "B.txt": "large", "b.txt": "small", "\U0001fab8\nnew": "coral", os.fsdecode(b"\xff"): "bytes",
    }  # fmt: skip
    assert "large" in hub.diff(layout.hub, git(clone, "rev-parse", "HEAD~"), mine)


def test_a_heap_of_references_is_not_read(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    rows = "".join(f"{mine} refs/heads/{number:06d}\n" for number in range(200_000))
    (clone / ".git" / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + rows)
    os.mkfifo(clone / ".git" / "refs" / "heads" / "pipe")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine
    assert git(layout.hub, "for-each-ref", "--format=%(refname)") == "refs/attempts/1\nrefs/heads/main"


def test_a_pipe_at_the_head_of_a_pack_is_bounded_too(layout: Layout, clone: Path) -> None:
    """The beginning of a stream is waited for no longer than the rest of it."""
    store = Git(layout.hub)
    with pytest.raises(GitError) as caught:
        store.pipe(("-c", "alias.wait=!sleep 300", "wait"), store, ("cat-file",), data=b"", timeout=0.2, head=(12, str))
    assert caught.value.timed_out
