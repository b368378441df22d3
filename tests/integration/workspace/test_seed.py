"""What a run takes of a seed: of a repository the last commit, and what has changed since is told."""

import os
import subprocess
from pathlib import Path

import pytest
from files import write_files

from coral.processes import environment
from workspace import hub
from workspace.errors import GitError
from workspace.intake import SEED
from workspace.pins import restore_seed
from workspace.seed import differences, taken_from, uncommitted


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=environment.base())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "seed", {"a.txt": "1", "deep/b.txt": "2"})


@pytest.fixture
def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "-c", "user.name=x", "-c", "user.email=x@y.invalid", "commit", "-qam", "more")


def test_of_a_folder_all_is_taken(folder: Path, tmp_path: Path) -> None:
    assert taken_from(folder, tmp_path / "new") == folder
    assert uncommitted(folder) == []


def test_of_a_repository_the_last_commit_is_taken(repository: Path, tmp_path: Path) -> None:
    write_files(repository, {"a.txt": "9", "new.txt": "3"})
    (repository / "deep/b.txt").unlink()
    taken = taken_from(repository, tmp_path / "new")
    assert (taken / "a.txt").read_text() == "1"
    assert sorted(path.name for path in taken.rglob("*.txt")) == ["a.txt", "b.txt"]
    assert sorted(uncommitted(repository)) == ["a.txt", "deep/b.txt", "new.txt"]
    commit(repository)
    assert uncommitted(repository) == ["new.txt"]


def test_a_repository_without_a_commit_cannot_be_used(tmp_path: Path) -> None:
    git(write_files(tmp_path / "empty", {"a.txt": "1"}), "init", "-q")
    with pytest.raises(GitError) as raised:
        taken_from(tmp_path / "empty", tmp_path / "new")
    assert raised.value.hint == "commit something in it first"


def test_what_a_folder_has_become_is_told_file_by_file(folder: Path, tmp_path: Path) -> None:
    taken = hub.create(tmp_path / "hub.git", folder)
    assert differences(tmp_path / "hub.git", taken, folder) == []
    os.utime(folder / "a.txt")  # touched, and the same
    assert differences(tmp_path / "hub.git", taken, folder) == []
    write_files(folder, {"a.txt": "9", "new.txt": "3"})
    assert differences(tmp_path / "hub.git", taken, folder) == ["a.txt", "new.txt"]
    (folder / "deep/b.txt").unlink()
    assert differences(tmp_path / "hub.git", taken, folder) == ["a.txt", "deep/b.txt", "new.txt"]


def test_a_change_before_the_reference_of_the_seed_was_written_again_is_found(folder: Path, tmp_path: Path) -> None:
    taken = hub.create(tmp_path / "hub.git", folder)
    write_files(folder, {"a.txt": "9"})
    (tmp_path / "hub.git" / SEED).unlink()
    assert restore_seed(tmp_path / "hub.git", taken)
    assert differences(tmp_path / "hub.git", taken, folder) == ["a.txt"]


def test_what_a_repository_has_become_is_told_once_it_is_committed(repository: Path, tmp_path: Path) -> None:
    taken = hub.create(tmp_path / "hub.git", repository)
    write_files(repository, {"a.txt": "9"})
    assert differences(tmp_path / "hub.git", taken, repository) == []
    commit(repository)
    assert differences(tmp_path / "hub.git", taken, repository) == ["a.txt"]
