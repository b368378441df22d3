"""Commits made to hurt: each is taken in for what it is, or refused with a stated bound, and the hub holds no more."""

import hashlib
import os
import shutil
import zlib
from pathlib import Path

import pytest
from clones import blob, commit, crafted, git, refused

from workspace import hub, intake, tree
from workspace.errors import GitError
from workspace.git import Git
from workspace.layout import Layout


def loose(clone: Path, kind: str, content: bytes) -> str:
    """An object as it is, whatever git thinks of it; its name."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = clone / ".git" / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole, 1))
    return name


def loose_commit(clone: Path, tree: str) -> str:
    about = f"tree {tree}\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\n\nx\n"
    return loose(clone, "commit", about.encode())


def test_an_object_that_imitates_a_disk_error_is_its_authors_fault(layout: Layout, clone: Path) -> None:
    modules = blob(clone, '[submodule "a"]\npath = a\nurl = -a: No space left on device\n')
    refused(layout, clone, crafted(clone, f"100644 blob {modules}\t.gitmodules"), "No space left on device")


def test_more_objects_than_are_taken_in_are_refused_before_one_is_written(layout, clone, monkeypatch) -> None:
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


def test_what_another_repository_holds_is_not_borrowed(layout: Layout, clone: Path, tmp_path) -> None:
    """We may read what the agent may not: its alternates must not make us fetch it."""
    secret = tmp_path / "secret"
    git(tmp_path, "init", "-q", str(secret))
    hidden = blob(secret, "the answers")
    (clone / ".git" / "objects" / "info" / "alternates").write_text(f"{secret}/.git/objects\n")
    refused(layout, clone, crafted(clone, f"100644 blob {hidden}\tanswers"), "cannot be read")
    assert git(clone, "cat-file", "-p", hidden) == "the answers"


def _link(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("place", "reason"), [("objects", "is a link"), ("folder", "cannot be read"), ("pack", "cannot be read")]
)
def test_no_folder_of_the_object_store_is_read_through_a_link(layout, clone, tmp_path, place, reason) -> None:
    """An agent that knows the id of a file, and not what it holds, would get it in the hub."""
    secret = tmp_path / "secret"
    git(tmp_path, "init", "-q", str(secret))
    hidden = blob(secret, "the answers")
    if place == "pack":
        git(secret, "update-ref", "refs/tags/x", hidden)
        git(secret, "repack", "-a", "-d", "-q")
    mine = crafted(clone, f"100644 blob {hidden}\tanswers")
    ours, theirs = clone / ".git" / "objects", secret / ".git" / "objects"
    kept = shutil.copytree(ours, tmp_path / "kept")
    name = {"objects": "", "folder": hidden[:2], "pack": "pack"}[place]
    _link(ours / name, theirs / name)
    for path in kept.iterdir() if place == "objects" else ():  # it may add what it has to the store that it shows
        shutil.copytree(path, ours / path.name, dirs_exist_ok=True)
    assert git(clone, "show", f"{mine}:answers") == "the answers"
    refused(layout, clone, mine, reason)
    assert not (layout.hub / "objects" / hidden[:2] / hidden[2:]).exists()


def test_alternates_in_a_circle_are_no_obstacle(layout: Layout, clone: Path) -> None:
    mine = commit(clone, "one")
    (clone / ".git" / "objects" / "info" / "alternates").write_text(f"{clone}/.git/objects\n../objects\n" * 100)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_repository_that_is_replaced_by_a_link_or_a_file_is_not_read(layout, clone, tmp_path) -> None:
    mine = commit(clone, "one")
    (clone / ".git").rename(tmp_path / "elsewhere")
    (clone / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    refused(layout, clone, mine, "has no repository any more")
    (clone / ".git").unlink()
    (clone / ".git").symlink_to(tmp_path / "elsewhere")
    refused(layout, clone, mine, r"\.git of its clone is a link")
    (clone / ".git").unlink()
    (tmp_path / "elsewhere").rename(clone / ".git")
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine


def test_a_shallow_clone_is_incomplete(layout: Layout, clone: Path) -> None:
    first, mine = commit(clone, "one"), commit(clone, "two")
    (clone / ".git" / "shallow").write_text(f"{mine}\n")
    (clone / ".git" / "objects" / first[:2] / first[2:]).unlink()
    assert git(clone, "rev-list", "HEAD") == mine
    refused(layout, clone, mine, "cannot be read")


@pytest.mark.parametrize(
    "name", [b".git", b".GIT", b".Git", b"git~1", b".git ", b".git.", b".g\xe2\x80\x8cit", b"..", b".", b"a/b", b""]
)
def test_names_that_could_lead_into_a_repository_are_refused(layout: Layout, clone: Path, name: bytes) -> None:
    inner = loose(clone, "tree", b"100644 config\0" + bytes.fromhex(blob(clone, "[core]")))
    outer = loose(clone, "tree", b"40000 " + name + b"\0" + bytes.fromhex(inner))
    refused(layout, clone, loose_commit(clone, outer), "cannot be read")


def test_a_link_in_the_place_of_git_modules_is_refused(layout: Layout, clone: Path) -> None:
    refused(layout, clone, crafted(clone, f"120000 blob {blob(clone, 'a.txt')}\t.gitmodules"), "cannot be read")


def test_the_same_name_twice_is_refused(layout: Layout, clone: Path) -> None:
    entry = b"100644 a\0" + bytes.fromhex(blob(clone, "x"))
    tree = loose(clone, "tree", entry + entry)
    refused(layout, clone, loose_commit(clone, tree), "cannot be read")


STRANGE = ("\U0001fab8\nnew", "tab\there", '"quoted"', "-dash", "ünï", os.fsdecode(b"\xff\xfe"))


def test_strange_names_are_kept_and_case_makes_a_difference(layout: Layout, clone: Path, tmp_path) -> None:
    (clone / "B.txt").write_text("large")
    (clone / "b.txt").write_text("small")
    strange = {name: name.encode("unicode-escape", "backslashreplace").decode() for name in STRANGE}
    for name, content in strange.items():
        (clone / name).write_text(content)
    mine = commit(clone, "one")
    intake.take_in(layout.hub, clone, mine, 1)
    hub.checkout(layout.hub, mine, tmp_path / "out")
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {
        **{"a.txt": "one", "B.txt": "large", "b.txt": "small"},
        **strange,
    }
    assert "large" in hub.diff(layout.hub, git(clone, "rev-parse", "HEAD~"), mine)


def test_many_references_are_not_read(layout: Layout, clone: Path) -> None:
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


NO_ENCODING = "has working-tree-encoding without a value"


def checks_out(layout: Layout, clone: Path, name: str, target: Path) -> bool:
    """Whether git alone, without a look at the tree, can check the commit out."""
    target.mkdir()
    store = Git(clone / ".git", GIT_INDEX_FILE=target.with_name("index"), GIT_WORK_TREE=target)
    try:
        store.run("read-tree", "-u", "--reset", name)
    except GitError:
        return False
    return True


@pytest.mark.parametrize("mode", ["100644", "120000"])
@pytest.mark.parametrize(
    "text",
    [
        "* working-tree-encoding\n",
        "*\tworking-tree-encoding\r\n",
        "x y\n  *.txt text working-tree-encoding eol=lf",
        '"a.txt" working-tree-encoding\n',
        '"a.txt"working-tree-encoding\n',
        '"a\\056txt"working-tree-encoding\n',
        "[attr]text working-tree-encoding\n* text\n",
    ],
)
def test_attributes_with_which_git_ends_are_their_authors_fault(layout, clone, tmp_path, text, mode) -> None:
    mine = crafted(clone, f"{mode} blob {blob(clone, text)}\t.gitattributes", f"100644 blob {blob(clone, 'x')}\ta.txt")
    assert not checks_out(layout, clone, mine, tmp_path / "out")
    refused(layout, clone, mine, rf"\.gitattributes {NO_ENCODING}")


def test_attributes_in_a_folder_are_named_and_many_are_refused(layout: Layout, clone: Path, monkeypatch) -> None:
    inner = git(clone, "mktree", data=f"100644 blob {blob(clone, '* working-tree-encoding')}\t.gitattributes\n")
    refused(layout, clone, crafted(clone, f"040000 tree {inner}\tdeep"), f"deep/.gitattributes {NO_ENCODING}")
    monkeypatch.setattr(tree, "MAX_ATTRIBUTES", 10)
    refused(layout, clone, crafted(clone, f"040000 tree {inner}\tdeep"), r"its \.gitattributes are larger than")


@pytest.mark.parametrize(
    "text",
    [
        "# * working-tree-encoding\n",
        "* working-tree-encoding=UTF-16\n",
        "* working-tree-encoding=UTF-16LE-BOM eol=crlf\n",
        "* -working-tree-encoding\n",
        "* !working-tree-encoding\n",
        "working-tree-encoding text\n",
        "\n* text=auto\n*.png binary\n",
        "",
    ],
)
def test_other_attributes_are_taken_in_and_checked_out(layout: Layout, clone: Path, tmp_path, text: str) -> None:
    rows = (f"100644 blob {blob(clone, text)}\t.gitattributes", f"100644 blob {blob(clone, 'x')}\ta.txt")
    mine = crafted(clone, *rows)
    assert intake.take_in(layout.hub, clone, mine, 1).commit == mine
    hub.checkout(layout.hub, mine, tmp_path / "out")
