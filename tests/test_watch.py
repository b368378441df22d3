"""Notifications: quick where they work, found out where they do not, and never needed."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from coral.watch import Watch


@pytest.fixture
def rung() -> threading.Event:
    return threading.Event()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    (folder / "agent-1").mkdir(parents=True)
    return folder


@pytest.fixture
def watch(inbox: Path, rung: threading.Event):
    watching = Watch((inbox,), rung.set)
    assert watching.keep_alive() == ""
    yield watching
    watching.close()


def put(folder: Path, name: str = "1.json") -> None:
    (folder / f".{name}").write_text("{}")
    (folder / f".{name}").rename(folder / name)


def test_a_file_that_is_moved_into_place_rings(watch, inbox, rung):
    put(inbox / "agent-1")
    assert rung.wait(10)
    assert watch.take()
    assert not watch.take()


def test_drafts_and_our_own_replies_do_not_ring(watch, inbox, rung):
    (inbox / "replies" / "agent-1").mkdir(parents=True)
    assert rung.wait(10)
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline:
        rung.clear()
        watch.take()
        time.sleep(0.01)
    put(inbox / "replies" / "agent-1")
    (inbox / "agent-1" / ".draft.json").write_text("{}")
    (inbox / "agent-1" / "note.txt").write_text("")
    assert not rung.wait(0.2)


def test_a_folder_that_was_made_anew_is_watched_again(watch, inbox, rung):
    shutil.rmtree(inbox)
    inbox.mkdir()
    deadline = time.monotonic() + 10
    while not rung.is_set() and time.monotonic() < deadline:  # as the poll does; the notice of the end may be late
        assert watch.keep_alive() == ""
        put(inbox)
        rung.wait(0.1)
    assert rung.is_set()


def test_a_folder_that_cannot_be_watched_is_told(tmp_path, rung):
    watching = Watch((tmp_path / "absent",), rung.set)
    assert "absent" in watching.keep_alive()
    watching.close()


def test_a_dead_observer_is_replaced(watch, inbox, rung):
    watch.close()
    assert watch.keep_alive() == ""
    put(inbox / "agent-1", "2.json")
    assert rung.wait(10)
