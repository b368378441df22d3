"""A folder that somebody made as hard to remove as he could is gone, and nothing beside it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coral.grader.remove_tree import remove_tree


def test_deep_locked_and_linked_folders_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    (folder / "locked" / "inner").mkdir(parents=True)
    (folder / "locked" / "inner" / "file").write_text("x")
    (kept / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(kept)
    (folder / "locked" / "nowhere").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / ".removed-1").mkdir()
    (folder / "locked").chmod(0)
    here = Path.cwd()
    try:
        os.chdir(folder)
        for _ in range(3000):
            os.mkdir("d" * 10)  # noqa: PTH102 - a path of all of them is too long
            os.chdir("d" * 10)
    finally:
        os.chdir(here)
    remove_tree(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (kept / "inner").is_dir()


def test_what_is_no_folder_goes_and_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "link", "nothing", "pipe"):
        remove_tree(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_two_who_remove_the_same_at_once_remove_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for number in range(200):
        (folder / str(number % 20) / str(number)).mkdir(parents=True)
        (folder / str(number % 20) / str(number) / "file").write_text("x")
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(remove_tree, folder) for _ in range(2)]:
            done.result()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_stays_alone(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "kept").mkdir(parents=True)
    (folder / "b").mkdir()
    for name in ("a/kept/1", "a/2", "b/3", "4"):
        (folder / name).write_text("x")
    unlink = os.unlink

    def refuse(name: str, *, dir_fd: int | None = None) -> None:
        if name == "1" or dir_fd is None:
            raise PermissionError(name)
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as refusing:
        refusing.setattr(os, "unlink", refuse)
        remove_tree(folder)
        remove_tree(folder / "a" / "kept" / "1")
    left = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    assert [str(path) for path in left] == ["a", "a/kept", "a/kept/1"]
