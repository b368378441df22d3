"""A folder that somebody made as hard to remove as he could is gone, and nothing beside it."""

import os
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
