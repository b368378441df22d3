"""Folders that did not change are not listed again, and nothing that comes into one is missed for it."""

import os
import time
from pathlib import Path

import pytest

from attempts import files
from attempts.files import RELIST, SETTLED, Listings, is_plain_file


class Inbox:
    """A folder that was made long ago, as far as the clock says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.listings = Listings()
        self.listed = 0
        self.later = 2 * SETTLED
        self.clock = 0.0
        scandir, time_ns = os.scandir, time.time_ns
        monkeypatch.setattr(files.os, "scandir", lambda path: self._count() or scandir(path))
        monkeypatch.setattr(files.time, "time_ns", lambda: time_ns() + self.later)
        monkeypatch.setattr(files.time, "monotonic", lambda: self.clock)

    def _count(self) -> None:
        self.listed += 1

    def let_tick(self) -> None:
        """Until the clock of the file system is another one than at the last change of the folder."""
        other = self.folder.parent / "other"
        while other.touch() or other.stat().st_ctime_ns == self.folder.stat().st_ctime_ns:
            pass

    def look(self) -> list[str]:
        return sorted(path.name for path in self.listings.entries(self.folder, is_plain_file))


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inbox:
    (tmp_path / "inbox").mkdir()
    return Inbox(tmp_path / "inbox", monkeypatch)


def test_a_folder_that_does_not_change_is_listed_once(inbox: Inbox) -> None:
    (inbox.folder / "one").touch()
    assert [inbox.look() for _ in range(5)] == [["one"]] * 5
    assert inbox.listed == 1


def test_what_comes_and_goes_is_seen_at_the_next_look(inbox: Inbox) -> None:
    assert inbox.look() == []
    inbox.let_tick()
    (inbox.folder / "one").touch()
    assert inbox.look() == ["one"]
    inbox.let_tick()
    (inbox.folder / "one").rename(inbox.folder / "two")
    assert inbox.look() == ["two"]
    inbox.let_tick()
    (inbox.folder / "two").unlink()
    assert inbox.look() == []


def test_a_folder_that_has_just_changed_is_listed_again(inbox: Inbox) -> None:
    inbox.later = 0
    for look in range(3):
        assert inbox.look() == []
        assert inbox.listed == look + 1


def test_a_folder_of_the_future_is_listed_again(inbox: Inbox) -> None:
    inbox.later = -10 * SETTLED  # the clock was set back
    assert [inbox.look(), inbox.look()] == [[], []]
    assert inbox.listed == 2


def test_once_a_minute_a_folder_is_listed_whatever_its_times_say(inbox: Inbox) -> None:
    inbox.look()
    inbox.clock = RELIST - 1
    inbox.look()
    assert inbox.listed == 1
    inbox.clock = RELIST
    assert [inbox.look(), inbox.look()] == [[], []]
    assert inbox.listed == 2


def test_what_is_given_may_be_changed(inbox: Inbox) -> None:
    (inbox.folder / "one").touch()
    inbox.listings.entries(inbox.folder, is_plain_file).clear()
    assert inbox.look() == ["one"]


def test_another_folder_in_its_place_is_listed(inbox: Inbox) -> None:
    (inbox.folder / "one").touch()
    assert inbox.look() == ["one"]
    inbox.folder.rename(inbox.folder.with_name("old"))
    assert inbox.look() == []
    inbox.folder.symlink_to("old")
    assert inbox.look() == []
    inbox.folder.unlink()
    inbox.folder.mkdir()
    (inbox.folder / "two").touch()
    assert inbox.look() == ["two"]
