"""What stays of a grade: the files that agents may read."""

import os
from pathlib import Path

import pytest
from files import write_files

from coral.grading import checkout
from coral.grading.checkout import ARTIFACT_BYTES, MOST_ARTIFACTS, keep_artifacts


def kept(folder: Path) -> dict[str, str]:
    keep_artifacts(folder, folder / "kept")
    return {path.name: path.read_text() for path in (folder / "kept").glob("*")}


def test_plain_files_are_kept_and_whatever_else_a_candidate_laid_there_is_not(tmp_path: Path) -> None:
    write_files(tmp_path, {"secret": "s", "artifacts/plot.svg": "<svg/>", "artifacts/.hidden": "", "artifacts/a/b": ""})
    (tmp_path / "artifacts" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "artifacts" / "pipe")
    assert kept(tmp_path) == {"plot.svg": "<svg/>"}


@pytest.mark.parametrize("target", ["../holdout", "/proc/self"])
def test_nothing_is_kept_of_a_folder_to_which_a_candidate_laid_a_link(tmp_path: Path, target: str) -> None:
    write_files(tmp_path, {"holdout/hidden": "s", "grade/stdout": ""})
    (tmp_path / "grade" / "artifacts").symlink_to(target)
    assert kept(tmp_path / "grade") == {}


def test_of_a_folder_with_very_many_files_only_the_first_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "MOST_NAMES", 3)
    write_files(tmp_path, {f"artifacts/{number}": "x" for number in range(9)})
    assert len(kept(tmp_path)) == 3


def test_too_many_or_too_large_files_are_not_kept(tmp_path: Path) -> None:
    write_files(tmp_path, {f"artifacts/{number:04d}": "x" for number in range(MOST_ARTIFACTS + 5)})
    with (tmp_path / "artifacts" / "0000").open("wb") as file:
        file.truncate(ARTIFACT_BYTES + 1)
    assert sorted(kept(tmp_path)) == [f"{number:04d}" for number in range(1, MOST_ARTIFACTS + 1)]


def test_a_grade_without_artifacts_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    assert kept(tmp_path) == {}
    keep_artifacts(tmp_path / "absent", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
