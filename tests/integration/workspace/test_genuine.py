"""What is graded is what the id of its commit stands for, although agents can write to the hub's objects."""

import os
import resource
from hashlib import sha1
from pathlib import Path

import pytest
from clones import committed, git, overwrite
from files import write_files

from workspace import hub
from workspace.errors import GitError, Unacceptable
from workspace.genuine import _id_of_folder, check_genuine, tree_of_commit

FILES = {"a.txt": "honest\n", "b/c.sh": "#!/bin/sh\n", "b.txt": "b", "b-c": "1", "ü/n": "2"}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    """A hub, and a folder with files for one more commit in it."""
    hub.create(tmp_path / "hub.git", write_files(tmp_path / "seed", {"seed.txt": "1"}))
    files = write_files(tmp_path / "files", FILES)
    (files / "b" / "c.sh").chmod(0o755)
    (files / "link").symlink_to("a.txt")
    (files / "gone").symlink_to("nowhere/at/all")
    return tmp_path / "hub.git", files


@pytest.mark.parametrize("packed", [False, True])
def test_an_honest_commit_is_checked_out(made: tuple[Path, Path], tmp_path: Path, packed: bool) -> None:
    store, files = made
    commit = committed(store, files)
    if packed:
        git(store, "update-ref", "refs/heads/x", commit)
        git(store, "repack", "-aq")
    hub.checkout(store, commit, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "honest\n"
    assert os.access(tmp_path / "out" / "b" / "c.sh", os.X_OK)


def test_files_have_the_id_of_their_commit_whatever_their_links_look_like(made: tuple[Path, Path]) -> None:
    """Else each checkout would read all objects again."""
    store, files = made
    (files / "slashes").symlink_to(".//b/")
    assert _id_of_folder(os.fsencode(files), 40) == tree_of_commit(store, committed(store, files))


def test_line_ends_and_empty_folders_are_no_forgery(made: tuple[Path, Path], tmp_path: Path) -> None:
    store, files = made
    write_files(files, {".gitattributes": "*.txt text eol=crlf\n"})
    commit = committed(store, files)
    hub.checkout(store, commit, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"honest\r\n"
    empty = git(store, "mktree", data="")
    tree = git(store, "mktree", data=f"040000 tree {empty}\tnothing\n")
    commit = git(store, "commit-tree", tree, "-m", "x")
    hub.checkout(store, commit, tmp_path / "empty")


def test_nobody_waits_for_a_pipe_that_somebody_laid_among_the_files(made: tuple[Path, Path], tmp_path: Path) -> None:
    store, files = made
    commit = committed(store, files)
    hub.checkout(store, commit, tmp_path / "out")
    check_genuine(store, commit, tmp_path / "out")
    (tmp_path / "out" / "a.txt").unlink()
    os.mkfifo(tmp_path / "out" / "a.txt")
    with pytest.raises(OSError, match=r"a\.txt is no regular file: somebody has replaced it"):
        check_genuine(store, commit, tmp_path / "out")


@pytest.mark.parametrize("converts", [False, True])
@pytest.mark.parametrize("what", ["blob", "folder", "tree", "commit"])
def test_an_object_that_was_overwritten_is_named(
    made: tuple[Path, Path], tmp_path: Path, what: str, converts: bool
) -> None:
    store, files = made
    if converts:
        write_files(files, {".gitattributes": "b.txt text eol=crlf\n", "b.txt": "1\n2\n"})
    commit = committed(store, files)
    forged = sha1(b"blob 7\0forged\n", usedforsecurity=False).hexdigest()
    git(store, "hash-object", "-w", "--stdin", data="forged\n")
    blob, folder, tree = git(store, "rev-parse", *(f"{commit}{end}" for end in (":a.txt", ":b", "^{tree}"))).split()
    if what == "blob":
        overwrite(store, blob, "blob", b"forged\n")
    elif what in ("folder", "tree"):
        overwrite(store, folder if what == "folder" else tree, "tree", b"100644 c.sh\0" + bytes.fromhex(forged))
    else:
        body = git(store, "cat-file", "commit", commit).encode() + b"\n"
        other = git(store, "mktree", data=f"100644 blob {forged}\ta.txt\n")
        overwrite(store, commit, "commit", body.replace(tree.encode(), other.encode()))
    # The hash of a commit and of its topmost tree git compares itself.
    said = {
        "blob": "the hub's copy of a.txt is not what its id",
        "folder": "the hub's copy of folder is not what its id",
    }
    with pytest.raises((GitError, Unacceptable), match=said.get(what, "hash mismatch")):
        hub.checkout(store, commit, tmp_path / "out")


def test_a_commit_of_deep_folders_does_not_use_up_the_descriptors(made: tuple[Path, Path]) -> None:
    """Without a descriptor the supervisor can start and write nothing."""
    store, files = made
    deep = files / "/".join("d" * 300)
    deep.mkdir(parents=True)
    (deep / "file").write_text("1")
    commit = committed(store, files)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    here = os.open(os.devnull, os.O_RDONLY)  # the lowest that is free
    os.close(here)
    resource.setrlimit(resource.RLIMIT_NOFILE, (here + 100, hard))
    try:
        check_genuine(store, commit, files)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
