"""How long a disk problem lasts."""

import errno
import os
from types import SimpleNamespace

import pytest

from coral.supervisor.disk import ASK_SECONDS, PAUSES, TRY_BYTES, TRY_SECONDS, USABLE_SECONDS, DiskCheck
from workspace.disk import ENOUGH, LEAST


@pytest.fixture
def disk(monkeypatch) -> SimpleNamespace:
    """What the system says of every disk."""
    answer = SimpleNamespace(f_flag=0, f_frsize=4096, f_blocks=9e9, f_bfree=8e9, f_bavail=8e9, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return answer


def set_left(disk: SimpleNamespace, count: int) -> None:
    disk.f_bavail = disk.f_bfree = count // disk.f_frsize


def test_a_disk_problem_ends_after_a_while_with_enough_space(disk: SimpleNamespace, tmp_path) -> None:
    check = DiskCheck(tmp_path)
    assert (check.check(10), check.next_check) == (None, None)
    set_left(disk, LEAST - 5000)
    assert check.check(11) == "the disk is full: 8.0 MB left"
    assert check.check(12) is None
    set_left(disk, ENOUGH - 5000)
    assert check.check(13) is None
    set_left(disk, ENOUGH + 5000)
    assert check.next_check == 13 + USABLE_SECONDS
    assert check.check(13 + USABLE_SECONDS - 0.1) is None
    assert check.check(13 + USABLE_SECONDS) == ""
    assert (check.check(20), check.next_check) == (None, None)


def test_where_the_disk_says_nothing_failures_show_the_problem_and_the_pauses_grow(disk, tmp_path) -> None:
    check = DiskCheck(tmp_path)
    clock = 100.0
    for pause in (2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600):
        assert check.check(clock, "Disk quota exceeded") == "Disk quota exceeded"
        assert check.next_check == clock + pause
        assert check.check(clock + pause - 0.1) is None
        assert check.check(clock + pause) == ""
        clock += pause + 1
    clock += PAUSES[1]
    assert check.check(clock, "Disk quota exceeded") == "Disk quota exceeded"
    assert check.next_check == clock + PAUSES[0]
    # And while it goes on failing, it is not over.
    assert check.check(clock + PAUSES[0], "Disk quota exceeded") is None
    assert check.next_check == clock + PAUSES[0] + USABLE_SECONDS


def test_a_quota_is_noticed_though_nothing_is_written(disk, tmp_path, monkeypatch) -> None:
    tries = []

    def no_space(_handle: int, _at: int, size: int) -> None:
        tries.append(size)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    check = DiskCheck(tmp_path)
    assert check.check(100) is None
    monkeypatch.setattr(os, "posix_fallocate", no_space)
    assert check.check(100 + TRY_SECONDS - 0.1) is None
    assert tries == []
    assert check.check(100 + TRY_SECONDS) == f"[Errno {errno.EDQUOT}] Disk quota exceeded"
    assert tries == [TRY_BYTES]
    assert check.next_check == 100 + TRY_SECONDS + PAUSES[0]
    # Known, it is not tried beside the tries for its end.
    assert check.check(100 + TRY_SECONDS + 0.1) is None
    assert tries == [TRY_BYTES]


def test_work_goes_on_only_when_space_can_be_set_aside_at_a_quota(disk, tmp_path, monkeypatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    check = DiskCheck(tmp_path)
    assert check.check(100, "Disk quota exceeded") == "Disk quota exceeded"
    with monkeypatch.context() as used_up:
        used_up.setattr(os, "posix_fallocate", no_space)
        for clock in (100 + PAUSES[0], 100 + PAUSES[0] + ASK_SECONDS):
            assert check.check(clock) is None
            assert check.next_check == clock + ASK_SECONDS
    assert check.check(100 + PAUSES[0] + 2 * ASK_SECONDS) == ""
    assert list(tmp_path.iterdir()) == []
