"""A run whose folder is taken away ends, unless it comes back in a moment; a lock that is taken away is put back."""

from pathlib import Path

import pytest

from coral.fleet import events as on
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.supervisor.lock import hold_lock
from coral.supervisor.presence import GONE_SECONDS, LOCK, RunFolderGuard
from workspace.layout import Layout, create, new_run


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = new_run(tmp_path / "runs", "task")
    create(found, ["ann"])
    return found


def test_a_folder_that_stays_away_ends_the_run_once(layout: Layout) -> None:
    stopped: list[RunEnd] = []
    with hold_lock(layout.lock) as lock:
        presence = RunFolderGuard(layout, lock, stopped.append)
        layout.root.rename(layout.root.with_name("elsewhere"))
        for clock in (100.0, 100.0 + GONE_SECONDS / 2):
            assert presence.look(clock) == []
        assert stopped == []
        for clock in (100.0 + GONE_SECONDS, 100.0 + 3 * GONE_SECONDS):
            assert presence.look(clock) == []
        assert stopped == [RunEnd(RunEndKind.FOLDER_GONE)]


def test_a_folder_that_comes_back_was_never_away(layout: Layout) -> None:
    stopped: list[RunEnd] = []
    with hold_lock(layout.lock) as lock:
        presence = RunFolderGuard(layout, lock, stopped.append)
        for clock in (100.0, 200.0, 300.0):
            layout.root.rename(layout.root.with_name("elsewhere"))
            presence.look(clock)
            layout.root.with_name("elsewhere").rename(layout.root)
            assert presence.look(clock + GONE_SECONDS) == []
    assert stopped == []


def test_a_lock_that_is_taken_away_is_told_of_once(layout: Layout) -> None:
    with hold_lock(layout.lock) as lock:
        presence = RunFolderGuard(layout, lock, pytest.fail)
        layout.lock.unlink()
        assert presence.look(100.0) == [on.Restored(item=LOCK, found="was removed", source="memory")]
        assert presence.look(101.0) == []
