"""The parts of the loop: what is gathered and how often, what performing comes to, disks that are full, edits."""

import os
import shutil
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.actions import ScanEdits
from coral.fleet.agent_state import Agent, Phase
from coral.fleet.events import Broken, EditsScanned, Moment
from coral.fleet.reasons import START
from coral.fleet.run_state import Fleet
from coral.supervisor import activity
from coral.supervisor.activity import last_edit
from coral.supervisor.disk import PAUSES, USABLE_SECONDS, DiskCheck
from coral.supervisor.gather import OUTPUT_SECONDS
from coral.supervisor.loop import Supervisor
from coral.supervisor.output_monitor import QUIET_PAUSE, QUIET_SECONDS
from workspace.disk import ENOUGH, LEAST

# --- when a file of a clone was last changed -------------------------------------------------------------------------


def changed(path: Path, ago: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    then = time.time() - ago
    os.utime(path, (then, then))
    return path


def found(clone: Path) -> int | None:
    """In whole hours."""
    ago = last_edit(clone)
    return None if ago is None else round(ago / 3600)


def test_the_last_edit_counts_at_any_depth(tmp_path) -> None:
    assert found(tmp_path) is None
    changed(tmp_path / "old.py", 9 * 3600)
    assert found(tmp_path) == 9
    changed(tmp_path / "src" / "deep" / "new.py", 2 * 3600)
    changed(tmp_path / "src" / "middle.py", 5 * 3600)
    assert found(tmp_path) == 2


@pytest.mark.parametrize(
    "name", [".git/index", ".hidden", "__pycache__/x.pyc", "a/node_modules/x.js", ".venv/lib/x.py"]
)
def test_what_tools_write_is_no_edit(tmp_path, name: str) -> None:
    changed(tmp_path / "old.py", 9 * 3600)
    changed(tmp_path / name, 0)
    assert found(tmp_path) == 9


def test_links_pipes_and_folders_are_no_files_and_the_future_is_not_believed(tmp_path) -> None:
    clone = tmp_path / "clone"
    changed(clone / "old.py", 9 * 3600)
    changed(tmp_path / "outside" / "new.py", 0)
    (clone / "link").symlink_to(tmp_path / "outside")
    (clone / "file").symlink_to(tmp_path / "outside" / "new.py")
    (clone / "loop").symlink_to(clone)
    (clone / "folder").mkdir()
    os.mkfifo(clone / "pipe")
    changed(clone / "later.py", -5 * 3600)
    assert found(clone) == 9


def test_a_clone_that_is_gone_or_closed_has_no_edits(tmp_path) -> None:
    assert last_edit(tmp_path / "nowhere") is None


def test_only_so_many_entries_are_looked_at_and_the_nearest_first(tmp_path, monkeypatch) -> None:
    changed(tmp_path / "old.py", 9 * 3600)
    for number in range(20):
        changed(tmp_path / "deep" / f"{number}.py", 0)
    monkeypatch.setattr(activity, "MAX_ENTRIES", 2)
    assert found(tmp_path) == 9


def test_a_scan_that_cannot_begin_has_found_nothing_and_is_told_of(start) -> None:
    layout = start(["hang"], supervise=False).layout
    manager = Supervisor(layout, (layout.private / "seed").read_text().strip())
    manager.close()  # from now on there is no thread to be had
    action = ScanEdits(agent="agent-1", launch=3)
    manager._performer.perform([action], manager._fleet, Moment(run_time=0.0, wall_time=""))
    scanned, broken = manager._queue.take()
    assert scanned == EditsScanned(agent="agent-1", launch=3)
    assert isinstance(broken, Broken)
    assert broken.item == "the scan of the files of agent-1"


# --- how long a disk problem lasts -----------------------------------------------------------------------------------


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
    for pause in (15, 30, 60, 120, 240, 480, 600, 600):
        assert check.check(clock, "Disk quota exceeded") == "Disk quota exceeded"
        assert check.check(clock + 1, "Disk quota exceeded") is None
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


# --- how often agents are listened to --------------------------------------------------------------------------------


def test_an_agent_that_has_long_been_silent_is_listened_to_less_often_until_it_speaks(supervisor) -> None:
    fleet = Fleet(agents={"agent-1": Agent(name="agent-1", phase=Phase.RUNNING, launch=1, has_output=True)})
    monitor = supervisor._monitors.open("agent-1", 1, None, 0.0)
    output = supervisor._layout.output("agent-1", 1)
    output.parent.mkdir(parents=True, exist_ok=True)

    def pauses(since: float, seconds: float) -> set[float]:
        """Between two looks at what it printed, while the loop comes by twice a second."""
        looks = []
        for turn in range(int(seconds / OUTPUT_SECONDS)):
            now = on.Moment(run_time=since + turn * OUTPUT_SECONDS, wall_time="")
            list(supervisor._gatherer._read_output(fleet, now))
            if monitor.read_at == now.run_time:
                looks.append(now.run_time)
        return {later - before for before, later in pairwise(looks)}

    assert pauses(0.0, QUIET_SECONDS) == {OUTPUT_SECONDS}
    assert pauses(QUIET_SECONDS, 20.0) == {QUIET_PAUSE}
    output.write_text("a word\n")
    list(supervisor._gatherer._read_output(fleet, on.Moment(run_time=QUIET_SECONDS + 30.0, wall_time="")))
    assert pauses(QUIET_SECONDS + 30.5, 20.0) == {OUTPUT_SECONDS}


# --- what an action comes to -----------------------------------------------------------------------------------------


NOW = on.Moment(run_time=0.0, wall_time="")
ALERT = do.Notify(id="alert-1", text="look")


def performed(supervisor: Supervisor, *actions: do.Action) -> list[on.Event]:
    """What performing them puts on the queue at once."""
    supervisor._performer.perform(actions, Fleet(), NOW)
    return supervisor._queue.take()


def test_what_could_not_be_written_is_kept_until_it_is_to_be_written_again(supervisor: Supervisor) -> None:
    logs = supervisor._layout.events.parent
    shutil.rmtree(logs)
    logs.write_text("in the way")
    failed = on.WriteFailed(item="alert alert-1")
    assert performed(supervisor, ALERT) == [failed]
    assert performed(supervisor, do.WriteAgain()) == [failed]
    logs.unlink()
    logs.mkdir()
    assert performed(supervisor) == []
    assert performed(supervisor, do.WriteAgain()) == [on.Notified(id="alert-1")]
    assert performed(supervisor, do.WriteAgain()) == []
    assert supervisor._layout.events.read_text().count('"look"') == 1


def test_an_action_that_fails_holds_up_no_other(supervisor: Supervisor) -> None:
    unknown = do.ShowHeartbeats(owner="nobody")
    broken, notified = performed(supervisor, unknown, ALERT)
    assert broken == on.Broken(item="the action ShowHeartbeats", reason="KeyError: 'nobody'")
    assert notified == on.Notified(id="alert-1")


def test_a_child_whose_start_failed_on_the_way_is_never_let_go(supervisor: Supervisor) -> None:
    shutil.rmtree(supervisor._layout.clone("agent-1"))
    spawn = do.Spawn(agent="agent-1", launch=1, session=None, messages=(), last_result_seen=0, reason=START)
    (failed,) = performed(supervisor, spawn)
    assert isinstance(failed, on.SpawnFailed)
    assert (failed.who, failed.launch) == ("agent-1", 1)
    assert supervisor._launches.find("agent-1", 1) is None
