"""One supervisor per run, known by name."""

import os

import pytest

from coral.errors import CoralError
from coral.lock import hold_lock, holder


def test_the_second_one_is_told_who_is_the_first(tmp_path):
    lock = tmp_path / "supervisor.lock"
    assert holder(lock) is None
    with hold_lock(lock):
        assert holder(lock) == os.getpid()
        with pytest.raises(CoralError, match=str(os.getpid())), hold_lock(lock):
            pass
        assert holder(lock) == os.getpid()
    assert holder(lock) is None


def test_a_damaged_lock_file_still_locks(tmp_path):
    lock = tmp_path / "supervisor.lock"
    lock.write_bytes(b"\xff[")
    with hold_lock(lock):
        lock.write_bytes(b"\xff[")
        with pytest.raises(CoralError, match="cannot supervise"), hold_lock(lock):
            pass
