"""Beats come often at first and while somebody watches, and whoever watches is forgotten when it leaves."""

import os
import time
from pathlib import Path

import pytest

from heartbeats import interval as module
from heartbeats.interval import ALONE, BELIEVED_SECONDS, FIRST, WATCHED, OwnInterval, WatchedLook, Watcher, interval


def test_the_interval_grows_up_to_a_bound_that_a_watcher_lowers() -> None:
    ages = (0, 10, 20, 30, 100, 150, 1e6)
    assert [interval(age, is_watched=False) for age in ages] == [FIRST, 1, 2, 3, 10, ALONE, ALONE]
    assert [interval(age, is_watched=True) for age in ages] == [FIRST, 1, 2, WATCHED, WATCHED, WATCHED, WATCHED]
    assert 2 <= WATCHED <= 5 < ALONE


def test_a_watcher_is_seen_while_it_touches_and_forgotten_afterwards(tmp_path: Path) -> None:
    beats = tmp_path / "beats.jsonl"
    assert not WatchedLook(beats).is_watched()
    Watcher(beats).touch()
    assert WatchedLook(beats).is_watched()
    mark = module.watched_file(beats)
    for shift in (-BELIEVED_SECONDS - 1, BELIEVED_SECONDS + 1):  # it has left, or the clock was set back since
        os.utime(mark, (time.time() + shift,) * 2)
        assert not WatchedLook(beats).is_watched()
    Watcher(beats).touch()
    assert WatchedLook(beats).is_watched()


def test_looks_and_touches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    beats = tmp_path / "beats.jsonl"
    look, watcher = WatchedLook(beats), Watcher(beats)
    watcher.touch()
    assert look.is_watched()
    module.watched_file(beats).unlink()
    watcher.touch()
    assert not module.watched_file(beats).exists()
    assert look.is_watched()
    now[0] += module.LOOK_SECONDS
    assert not look.is_watched()
    now[0] += module.TOUCH_SECONDS
    watcher.touch()
    assert module.watched_file(beats).exists()


def test_where_nothing_can_be_written_nobody_is_known_to_watch(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    beats = tmp_path / "no" / "beats.jsonl"
    Watcher(beats).touch()
    assert not WatchedLook(beats).is_watched()
    # The folder may be an agent's: its link leads nowhere.
    linked = tmp_path / "linked.jsonl"
    os.utime(tmp_path / "target", (1, 1))
    module.watched_file(linked).symlink_to(tmp_path / "target")
    Watcher(linked).touch()
    assert (tmp_path / "target").stat().st_mtime == 1


def test_work_of_its_own_looks_where_its_pulses_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    beats = tmp_path / "beats.jsonl"
    own, alone = OwnInterval(str(beats)), OwnInterval("")
    assert (own.seconds(), alone.seconds()) == (FIRST, FIRST)
    now[0] += 1000
    assert own.seconds() == ALONE
    Watcher(beats).touch()
    now[0] += module.LOOK_SECONDS
    assert (own.seconds(), alone.seconds()) == (WATCHED, ALONE)
