"""A commit's files are read without a checkout only where they are those that a checkout would write."""

import os
import stat
from hashlib import sha1
from pathlib import Path

import pytest
from clones import committed, git, overwrite
from files import write_files

from workspace import export as module, hub
from workspace.errors import GitError, Unacceptable
from workspace.export import export

LONG = {
    "name": "n" * 101,
    "path": "/".join(["folder" * 3] * 9),
    "both": "/".join(["folder" * 10] * 6) + "/" + "n" * 200,
}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    """A hub, and a folder with files for one more commit in it."""
    hub.create(tmp_path / "hub.git", write_files(tmp_path / "seed", {"seed.txt": "1"}))
    files = write_files(
        tmp_path / "files", {"a.txt": "1\n", "b/c.sh": "#!/bin/sh\n", "b.txt": "", "b-c": "1", "n" * 100: "2"}
    )
    (files / "b" / "c.sh").chmod(0o755)
    (files / "data").write_bytes(bytes(range(256)) * 300)
    (files / "link").symlink_to("a.txt")
    (files / "gone").symlink_to("t" * 100)
    (files / os.fsdecode(b"caf\xe9 \n")).write_text("3")
    return tmp_path / "hub.git", files


def as_checked_out(store: Path, commit: str, folder: Path) -> dict[str, tuple[int, bytes]]:
    hub.checkout(store, commit, folder)
    found = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        content = os.fsencode(path.readlink()) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = mode, content
    return found


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_files_are_those_of_a_checkout(made: tuple[Path, Path], tmp_path: Path, umask: int) -> None:
    store, files = made
    commit = committed(store, files)
    before = os.umask(umask)
    try:
        exported = export(store, commit)
        wanted = as_checked_out(store, commit, tmp_path / "out")
    finally:
        os.umask(before)
    assert exported is not None
    found = {file.name: (file.mode, file.content) for file in exported}
    links = {name for name, (mode, _) in wanted.items() if stat.S_ISLNK(mode)}
    assert {name: stat.S_IFMT(mode) for name, (mode, _) in found.items()} == {
        name: stat.S_IFMT(mode) for name, (mode, _) in wanted.items()
    }
    assert {name: file for name, file in found.items() if name not in links} == {
        name: file for name, file in wanted.items() if name not in links
    }
    assert all(found[name][1] == wanted[name][1] for name in links)


@pytest.mark.parametrize(
    "attributes",
    ["a.txt export-ignore", ".gitattributes export-ignore", "a.txt export-subst", "*.txt text eol=crlf"],
)
def test_where_attributes_say_otherwise_only_a_checkout_tells(made: tuple[Path, Path], attributes: str) -> None:
    store, files = made
    write_files(files, {".gitattributes": attributes + "\n", "a.txt": "$Format:%H$\n"})
    assert export(store, committed(store, files)) is None


def test_other_attributes_change_nothing(made: tuple[Path, Path]) -> None:
    store, files = made
    write_files(files, {".gitattributes": "*.png binary\n*.py text\n"})
    assert export(store, committed(store, files)) is not None


@pytest.mark.parametrize("name", LONG.values(), ids=LONG)
def test_long_names_are_left_to_a_checkout(made: tuple[Path, Path], name: str) -> None:
    store, files = made
    write_files(files, {name: "2"})
    assert export(store, committed(store, files)) is None


def test_a_long_target_of_a_link_is_left_to_a_checkout(made: tuple[Path, Path]) -> None:
    store, files = made
    (files / "far").symlink_to("t" * 101)
    assert export(store, committed(store, files)) is None


def test_a_folder_without_files_is_left_to_a_checkout(made: tuple[Path, Path]) -> None:
    store, _ = made
    tree = git(store, "mktree", data=f"040000 tree {git(store, 'mktree', data='')}\tnothing\n")
    assert export(store, git(store, "commit-tree", tree, "-m", "x")) is None


def test_a_name_that_a_folder_has_twice_is_left_to_a_checkout(made: tuple[Path, Path]) -> None:
    store, _ = made
    file = git(store, "hash-object", "-w", "--stdin", data="1")
    row = f"100644 blob {file}\ta\n"
    assert export(store, git(store, "commit-tree", git(store, "mktree", data=row * 2), "-m", "x")) is None


def test_what_is_large_is_left_to_a_checkout(made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    store, files = made
    monkeypatch.setattr(module, "LARGEST", 50_000)
    assert export(store, committed(store, files)) is None


@pytest.mark.parametrize("what", ["blob", "folder", "commit"])
def test_an_object_that_was_overwritten_is_not_exported(made: tuple[Path, Path], what: str) -> None:
    store, files = made
    commit = committed(store, files)
    blob, folder, tree = git(store, "rev-parse", *(f"{commit}{end}" for end in (":a.txt", ":b", "^{tree}"))).split()
    git(store, "hash-object", "-w", "--stdin", data="forged\n")
    forged = sha1(b"blob 7\0forged\n", usedforsecurity=False).hexdigest()
    if what == "blob":
        overwrite(store, blob, "blob", b"forged\n")
    elif what == "folder":
        overwrite(store, folder, "tree", b"100644 c.sh\0" + bytes.fromhex(forged))
    else:
        body = git(store, "cat-file", "commit", commit).encode() + b"\n"
        other = git(store, "mktree", data=f"100644 blob {forged}\ta.txt\n")
        overwrite(store, commit, "commit", body.replace(tree.encode(), other.encode()))
        with pytest.raises((GitError, Unacceptable)):
            export(store, commit)
        return
    assert export(store, commit) is None


def test_only_a_whole_id_is_a_commit(made: tuple[Path, Path]) -> None:
    with pytest.raises(GitError, match="not a whole commit id"):
        export(made[0], "HEAD")
