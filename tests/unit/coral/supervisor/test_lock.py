"""One supervisor per run, known by name."""

import os

import pytest

from coral.errors import CoralError
from coral.supervisor.lock import hold_lock, holder


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


@pytest.mark.parametrize("replace", [lambda lock: None, lambda lock: lock.touch(), lambda lock: lock.write_text("{}")])
def test_a_lock_that_was_removed_is_held_again(tmp_path, replace):
    path = tmp_path / "supervisor.lock"
    with hold_lock(path) as lock:
        assert lock.put_back() is False
        path.unlink()
        replace(path)
        assert lock.put_back() is True
        assert lock.put_back() is False
        assert holder(path) == os.getpid()
        with pytest.raises(CoralError, match=str(os.getpid())), hold_lock(path):
            pass
    assert holder(path) is None


def test_who_took_a_removed_lock_has_it(tmp_path):
    path = tmp_path / "supervisor.lock"
    with hold_lock(path) as first:
        path.unlink()
        with hold_lock(path) as second:
            with pytest.raises(CoralError, match=str(os.getpid())):
                first.put_back()
            assert second.put_back() is False
        assert first.put_back() is True


def test_what_lies_in_the_place_of_the_lock_ends_no_supervisor(tmp_path):
    path = tmp_path / "private" / "supervisor.lock"
    path.parent.mkdir()
    with hold_lock(path) as lock:
        path.unlink()
        path.mkdir()
        assert lock.put_back() is False
        path.rmdir()
        assert lock.put_back() is True
        path.parent.rename(tmp_path / "elsewhere")
        assert lock.put_back() is False  # no folder, no lock
