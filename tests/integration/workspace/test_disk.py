"""What is known of a disk: what it lacks, for how long after that was over, and what tells of it where it is silent."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from coral.supervisor.disk import EASED_SECONDS, PAUSES, DiskCheck
from workspace.disk import ENOUGH, FEWEST, LEAST, disk_problem_of, is_disk_problem
from workspace.errors import GitError, Unacceptable

ROOM = {"f_flag": 0, "f_frsize": 4096, "f_blocks": 9e9, "f_bfree": 8e9, "f_bavail": 8e9, "f_files": 9e9}
ROOM |= {"f_ffree": 8e9, "f_favail": 8e9}


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the system says of every disk; there is room."""
    said = SimpleNamespace(**ROOM)
    monkeypatch.setattr(os, "statvfs", lambda _: said)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return said


def set_left(disk: SimpleNamespace, count: int) -> None:
    disk.f_bavail = disk.f_bfree = count // disk.f_frsize


def test_a_disk_says_what_it_lacks(disk: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_problem_of(tmp_path) == ""
    disk.f_bavail = 0
    assert disk_problem_of(tmp_path / "not" / "yet" / "there") == "the disk is full: 0.0 MB left"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert disk_problem_of(tmp_path) == ""  # what is kept for root is root's
    disk.f_ffree = FEWEST - 1
    assert disk_problem_of(tmp_path) == f"the disk is full: it can hold {FEWEST - 1} more files"
    disk.f_flag = os.ST_RDONLY
    assert disk_problem_of(tmp_path) == "the disk can only be read"


def test_a_disk_that_says_nothing_has_room(disk: SimpleNamespace, tmp_path: Path) -> None:
    for name in ROOM:
        setattr(disk, name, 0)
    assert disk_problem_of(tmp_path) == ""


def test_it_is_over_only_when_it_has_been_for_a_while(disk: SimpleNamespace, tmp_path: Path) -> None:
    space = DiskCheck(tmp_path)
    assert (space.look(10), space.next_look) == (None, None)
    set_left(disk, LEAST - 5000)
    assert space.look(11) == "the disk is full: 8.0 MB left"
    assert space.look(12) is None
    set_left(disk, ENOUGH - 5000)
    assert space.look(13) is None
    set_left(disk, ENOUGH + 5000)
    assert space.next_look == 13 + EASED_SECONDS
    assert space.look(13 + EASED_SECONDS - 0.1) is None
    assert space.look(13 + EASED_SECONDS) == ""
    assert (space.look(20), space.next_look) == (None, None)


def test_what_the_disk_does_not_say_is_told_by_what_fails_and_tried_again_ever_later(
    disk: SimpleNamespace, tmp_path: Path
) -> None:
    space = DiskCheck(tmp_path)
    clock = 100.0
    for pause in (15, 30, 60, 120, 240, 480, 600, 600):
        assert space.look(clock, "Disk quota exceeded") == "Disk quota exceeded"
        assert space.look(clock + 1, "Disk quota exceeded") is None
        assert space.next_look == clock + pause
        assert space.look(clock + pause - 0.1) is None
        assert space.look(clock + pause) == ""
        clock += pause + 1
    clock += PAUSES[1]
    assert space.look(clock, "Disk quota exceeded") == "Disk quota exceeded"
    assert space.next_look == clock + PAUSES[0]
    # And while it goes on failing, it is not over.
    assert space.look(clock + PAUSES[0], "Disk quota exceeded") is None
    assert space.next_look == clock + PAUSES[0] + EASED_SECONDS


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
    ("error", "tells"),
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
def test_what_failed_for_want_of_space_is_known_by_what_no_agent_can_say(error: Exception, tells: bool) -> None:
    assert is_disk_problem(error) is tells
