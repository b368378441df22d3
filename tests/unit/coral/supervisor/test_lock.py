"""One supervisor for each run, known by name; a run whose folder is taken away ends, unless it comes back."""

import os
from pathlib import Path

import pytest

from coral.errors import CoralError
from coral.supervisor.lock import GONE_SECONDS, RunFolderGuard, hold_lock, holder
from workspace.layout import Layout, create, new_run


@pytest.fixture(autouse=True)
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coral.supervisor.lock.TRIES", 2)


def test_the_second_one_is_told_who_is_the_first(tmp_path):
    lock = tmp_path / "supervisor.lock"
    assert holder(lock) is None
    with hold_lock(lock):
        assert holder(lock) == os.getpid()
        with pytest.raises(CoralError, match=str(os.getpid())), hold_lock(lock):
            pass
        assert holder(lock) == os.getpid()
    assert holder(lock) is None
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
        assert lock.restore() is False
        path.unlink()
        replace(path)
        assert lock.restore() is True
        assert lock.restore() is False
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
                first.restore()
            assert second.restore() is False
        assert first.restore() is True


def test_what_lies_in_the_place_of_the_lock_ends_no_supervisor(tmp_path):
    path = tmp_path / "private" / "supervisor.lock"
    path.parent.mkdir()
    with hold_lock(path) as lock:
        path.unlink()
        path.mkdir()
        assert lock.restore() is False
        path.rmdir()
        assert lock.restore() is True
        path.parent.rename(tmp_path / "elsewhere")
        assert lock.restore() is False  # no folder, no lock


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = new_run(tmp_path / "runs", "task")
    create(found, ["ann"])
    return found


def test_a_folder_that_stays_away_ends_the_run_once_and_one_that_comes_back_was_never_away(layout: Layout) -> None:
    stopped: list[bool] = []
    with hold_lock(layout.lock) as lock:
        guard = RunFolderGuard(layout, lock, lambda: stopped.append(True))
        for clock in (100.0, 200.0, 300.0):
            layout.root.rename(layout.root.with_name("elsewhere"))
            guard.restore_lock(clock)
            layout.root.with_name("elsewhere").rename(layout.root)
            assert not guard.restore_lock(clock + GONE_SECONDS)
        assert stopped == []
        layout.root.rename(layout.root.with_name("elsewhere"))
        for clock in (1000.0, 1000.0 + GONE_SECONDS / 2):
            assert not guard.restore_lock(clock)
        assert stopped == []
        for clock in (1000.0 + GONE_SECONDS, 1000.0 + 3 * GONE_SECONDS):
            assert not guard.restore_lock(clock)
        assert stopped == [True]


def test_a_lock_that_is_taken_away_is_put_back_once(layout: Layout) -> None:
    with hold_lock(layout.lock) as lock:
        guard = RunFolderGuard(layout, lock, lambda: pytest.fail("it stops"))
        layout.lock.unlink()
        assert guard.restore_lock(100.0)
        assert not guard.restore_lock(101.0)
