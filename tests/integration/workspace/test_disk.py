"""Whether a disk is full, by what the system says of it and by what failed."""

import contextlib
import errno
import os
import sqlite3
from types import SimpleNamespace

import pytest
from strangers import owning

from workspace.disk import FEWEST, disk_problem_of, is_disk_problem
from workspace.errors import GitError, Unacceptable

FREE = {"f_flag": 0, "f_frsize": 4096, "f_blocks": 9e9, "f_bfree": 8e9, "f_bavail": 8e9}
FREE |= {"f_files": 9e9, "f_ffree": 8e9, "f_favail": 8e9}


@pytest.fixture
def disk(monkeypatch) -> SimpleNamespace:
    """What the system says of every disk."""
    answer = SimpleNamespace(**FREE)
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return answer


def test_a_disk_without_space_is_full(disk: SimpleNamespace, tmp_path, monkeypatch) -> None:
    assert disk_problem_of(tmp_path) == ""
    disk.f_bavail = 0
    assert disk_problem_of(tmp_path / "not" / "yet" / "there") == "the disk is full: 0.0 MB left"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert disk_problem_of(tmp_path) == ""  # what is kept for root is root's
    disk.f_ffree = FEWEST - 1
    assert disk_problem_of(tmp_path) == f"the disk is full: it can hold {FEWEST - 1} more files"
    disk.f_flag = os.ST_RDONLY
    assert disk_problem_of(tmp_path) == "the disk can only be read"


def test_a_disk_that_says_nothing_has_space(disk: SimpleNamespace, tmp_path) -> None:
    for name in FREE:
        setattr(disk, name, 0)
    assert disk_problem_of(tmp_path) == ""


def test_of_a_folder_that_may_not_be_looked_at_nothing_is_known(tmp_path) -> None:
    (tmp_path / "closed" / "private").mkdir(parents=True)
    with owning(tmp_path):
        (tmp_path / "closed").chmod(0)
        try:
            assert disk_problem_of(tmp_path / "closed" / "private") == ""
        finally:
            (tmp_path / "closed").chmod(0o755)


def of_git(detail: str, cause: GitError | None = None, *, killed: bool = False) -> GitError:
    error = GitError("cannot run git x: disk is full", detail=detail, killed=killed)
    error.__cause__ = cause
    return error


def of_sqlite() -> sqlite3.Error:
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute("pragma max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError, match="disk is full") as found:
            base.execute("create table a as select zeroblob(100000)")
    return found.value


FULL = "No space left on device"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EDQUOT, "x"), True),
        (OSError(errno.EROFS, "x"), True),
        (OSError(errno.EIO, "No space left"), False),
        (of_sqlite(), True),
        (sqlite3.OperationalError("database or disk is full"), False),
        (RuntimeError(FULL), False),
        (of_git(f"error: file write error: {FULL}\nfatal: unable to write"), True),
        (of_git(f"fatal: cannot create directory at 'a': {FULL}"), True),
        (of_git("error: unable to create file a: Disk quota exceeded"), True),
        (of_git("fatal: Unable to create 'x.lock': Read-only file system"), True),
        (of_git("error: unable to write file a"), True),
        (of_git("", of_git(f"fatal: write error: {FULL}")), True),
        # What others chose: a path, a name with a line's end in it, what stands in an object; and no reason at all.
        (of_git(f"error: invalid path '{FULL}'"), False),
        (of_git(f"error: unable to create file {FULL}: File exists"), False),
        (of_git(f"error: invalid path 'a\nfatal: b: {FULL}\nc'"), False),
        (of_git(f"error: object {'a' * 40}: gitmodulesUrl: disallowed submodule url: -a: {FULL}"), False),
        (of_git(f"warning: a: {FULL}"), False),
        (of_git(f"fatal: write error: {FULL}", killed=True), False),
        (of_git(""), False),
        (Unacceptable("the link disk is full leads out of the repository"), False),
    ],
)
def test_a_full_disk_is_known_by_words_that_no_agent_can_choose(error: Exception, expected: bool) -> None:
    assert is_disk_problem(error) is expected
