"""Folders that did not change are not listed again, and nothing that comes into one is missed for it."""

import os
from pathlib import Path

import pytest

from attempts import files
from attempts.files import RELIST, SETTLED, Listings, expanded, is_plain_file


class Inbox:
    """A folder, and how often it was listed; `clock` is ours, and only the file system has another one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.listings = Listings()
        self.listed = 0
        self.clock = 0.0
        scandir = os.scandir
        monkeypatch.setattr(files.os, "scandir", lambda path: self._count() or scandir(path))
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

    def settle(self) -> list[str]:
        """What lies there, seen so long after it came that nothing can have come with it unseen."""
        self.look()
        self.clock += SETTLED + 1
        found = self.look()
        self.listed = 0
        return found


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inbox:
    (tmp_path / "inbox").mkdir()
    return Inbox(tmp_path / "inbox", monkeypatch)


def test_a_folder_that_does_not_change_is_not_listed_again(inbox: Inbox) -> None:
    (inbox.folder / "one").touch()
    assert inbox.settle() == ["one"]
    assert [inbox.look() for _ in range(5)] == [["one"]] * 5
    assert inbox.listed == 0
    inbox.listings.entries(inbox.folder, is_plain_file).clear()
    assert inbox.look() == ["one"]


def test_what_comes_and_goes_is_seen_at_the_next_look(inbox: Inbox) -> None:
    assert inbox.settle() == []
    inbox.let_tick()
    (inbox.folder / "one").touch()
    assert inbox.settle() == ["one"]
    inbox.let_tick()
    (inbox.folder / "one").rename(inbox.folder / "two")
    assert inbox.settle() == ["two"]
    inbox.let_tick()
    (inbox.folder / "two").unlink()
    assert inbox.look() == []


@pytest.mark.parametrize("passed", [0.0, SETTLED])
def test_a_folder_that_has_just_changed_is_listed_again(inbox: Inbox, passed: float) -> None:
    inbox.look()
    inbox.clock = passed
    inbox.look()
    inbox.clock = SETTLED + 1
    inbox.look()
    assert inbox.listed == 3


def test_what_comes_in_the_same_tick_is_seen_whatever_the_file_system_s_clock_says(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's clock may be hours behind: then what has just come looks old at once."""
    lstat, then = os.lstat, list(os.lstat(inbox.folder))
    inbox.settle()
    slow = os.stat_result(then, {"st_ctime_ns": then[9] * 10**9 - 3600 * 10**9})
    monkeypatch.setattr(files.os, "lstat", lambda path: slow if path == inbox.folder else lstat(path))
    assert inbox.look() == []
    (inbox.folder / "one").touch()
    assert inbox.look() == ["one"]


def test_once_a_minute_a_folder_is_listed_whatever_its_times_say(inbox: Inbox) -> None:
    inbox.settle()
    listed_at = inbox.clock
    inbox.clock = listed_at + RELIST - 1
    inbox.look()
    assert inbox.listed == 0
    inbox.clock = listed_at + RELIST
    assert [inbox.look(), inbox.look()] == [[], []]
    assert inbox.listed == 1


def test_folders_that_are_gone_are_not_remembered_for_ever(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_REMEMBERED", 3)
    for number in range(10):
        (folder := inbox.folder / str(number)).mkdir()
        assert inbox.listings.entries(folder, is_plain_file) == []
        folder.rmdir()
    assert len(inbox.listings._known) <= 3


def test_another_folder_in_its_place_is_listed(inbox: Inbox) -> None:
    (inbox.folder / "one").touch()
    assert inbox.settle() == ["one"]
    inbox.folder.rename(inbox.folder.with_name("old"))
    assert inbox.look() == []
    inbox.folder.symlink_to("old")
    assert inbox.look() == []
    inbox.folder.unlink()
    inbox.folder.mkdir()
    (inbox.folder / "two").touch()
    assert inbox.look() == ["two"]


def test_a_path_of_a_user_that_is_not_there_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert expanded("~/a") == Path("/home/ann/a")
    assert expanded("~root/a").is_absolute()
    assert expanded("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")
