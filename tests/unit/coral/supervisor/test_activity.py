"""When a file of a clone was last changed: at any depth, by the agent and not by its tools."""

import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from coral.supervisor.activity import last_edit


def changed(path: Path, ago: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    then = time.time() - ago
    os.utime(path, (then, then))
    return path


def found(clone: Path) -> int | None:
    """In whole hours."""
    ago = last_edit(clone)
    return None if ago is None else round(ago / 3600)


def test_the_last_edit_counts_at_any_depth(tmp_path) -> None:
    assert found(tmp_path) is None
    changed(tmp_path / "old.py", 9 * 3600)
    assert found(tmp_path) == 9
    changed(tmp_path / "src" / "deep" / "new.py", 2 * 3600)
    changed(tmp_path / "src" / "middle.py", 5 * 3600)
    assert found(tmp_path) == 2


@pytest.mark.parametrize(
    "name", [".git/index", ".hidden", "__pycache__/x.pyc", "a/node_modules/x.js", ".venv/lib/x.py"]
)
def test_what_tools_write_is_no_edit(tmp_path, name: str) -> None:
    changed(tmp_path / "old.py", 9 * 3600)
    changed(tmp_path / name, 0)
    assert found(tmp_path) == 9


def test_links_pipes_and_folders_are_no_files_and_the_future_is_not_believed(tmp_path) -> None:
    clone = tmp_path / "clone"
    changed(clone / "old.py", 9 * 3600)
    changed(tmp_path / "outside" / "new.py", 0)
    (clone / "link").symlink_to(tmp_path / "outside")
    (clone / "file").symlink_to(tmp_path / "outside" / "new.py")
    (clone / "loop").symlink_to(clone)
    (clone / "folder").mkdir()
    os.mkfifo(clone / "pipe")
    changed(clone / "later.py", -5 * 3600)
    assert found(clone) == 9


def test_a_clone_that_is_gone_or_closed_has_no_edits(tmp_path) -> None:
    assert last_edit(tmp_path / "nowhere") is None


def test_only_so_many_entries_are_looked_at_and_the_nearest_first(tmp_path, monkeypatch) -> None:
    changed(tmp_path / "old.py", 9 * 3600)
    for number in range(20):
        changed(tmp_path / "deep" / f"{number}.py", 0)
    monkeypatch.setattr("coral.supervisor.activity.MAX_ENTRIES", 2)
    assert found(tmp_path) == 9


def test_a_file_that_is_removed_meanwhile_does_not_hide_what_is_beside_it(tmp_path, monkeypatch) -> None:
    changed(tmp_path / "a.py", 0)
    changed(tmp_path / "deep" / "new.py", 2 * 3600)
    changed(tmp_path / "old.py", 9 * 3600)
    listed = os.scandir

    def remove_after_listing(folder: str) -> AbstractContextManager[list[os.DirEntry[str]]]:
        entries = sorted(listed(folder), key=lambda entry: entry.name)
        (tmp_path / "a.py").unlink(missing_ok=True)
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", remove_after_listing)
    assert found(tmp_path) == 2
