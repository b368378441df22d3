"""Files and folders in which anything may lie are read in bounds."""

import os
from pathlib import Path

import pytest

from workspace import plain_file
from workspace.plain_file import read_plain, walk


def test_a_walk_ends_after_so_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for outer in range(10):
        for inner in range(10):
            (tmp_path / f"a{outer}" / f"b{inner}").mkdir(parents=True)
    (tmp_path / "z.md").write_text("last")
    assert [entry.name for entry in walk(tmp_path, 3, 99)] == ["z.md"]
    monkeypatch.setattr(plain_file, "MAX_NAMES", 50)
    assert list(walk(tmp_path, 3, 99)) == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert read_plain(tmp_path / "file", 3) == b"123"
    assert read_plain(tmp_path / "link", 9, follow=True) == b"12345"
    assert [read_plain(tmp_path / name, 9) for name in ("link", "pipe", "nothing", ".")] == [None] * 4
    assert [entry.name for entry in walk(tmp_path, 3, 99)] == ["file"]
