"""What is new in folders that grow."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from coral.cluster.growing import Given, Growing
from coral.cluster.mirror import Message, messages


def test_a_growing_folder_shows_what_was_added_and_of_a_flat_one_its_records(tmp_path: Path) -> None:
    for name in ("hub/objects", "attempts/inbox/agent-1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "attempts" / "inbox" / "agent-1" / "1.json").touch()
    (tmp_path / "attempts" / "index.sqlite").touch()
    growing = Growing(tmp_path, ["hub"], ["attempts"])
    assert set(growing.scan()) == {"hub", "hub/objects", "attempts"}
    (tmp_path / "hub" / "objects" / "aa").mkdir()
    (tmp_path / "hub" / "objects" / "aa" / "1").touch()
    (tmp_path / "attempts" / "000001.json").touch()
    (tmp_path / "attempts" / ".000002.json.tmp").touch()
    added = {"hub/objects/aa", "hub/objects/aa/1", "attempts/000001.json"}
    assert set(growing.scan()) == {"hub", "hub/objects", "attempts"} | added


def test_of_growing_folders_only_what_changed_is_told(tmp_path: Path) -> None:
    (tmp_path / "hub" / "aa").mkdir(parents=True)
    (tmp_path / "hub" / "aa" / "1").touch()
    growing = Growing(tmp_path, ["hub"])
    before, after = growing.changed()
    assert (before, set(after)) == ({}, {"hub", "hub/aa", "hub/aa/1"})
    settle(tmp_path / "hub" / "aa", tmp_path / "hub")
    growing.changed()
    assert growing.changed() == ({}, {})
    (tmp_path / "hub" / "aa" / "2").touch()
    assert {next(iter(message.values())) for message in messages(tmp_path, *growing.changed())} == {"hub/aa/2"}
    shutil.rmtree(tmp_path / "hub" / "aa")
    gone = [{"remove": name} for name in ("hub/aa/2", "hub/aa/1", "hub/aa")]
    assert list(messages(tmp_path, *growing.changed())) == gone
    assert growing.scan() == {"hub": ["folder"]}


def settle(*folders: Path) -> None:
    """Let it be long ago that these were changed."""
    for folder in folders:
        os.utime(folder, (1, 1))


def test_what_cannot_be_read_is_not_removed(tmp_path: Path, unreadable: set[str]) -> None:
    (tmp_path / "hub" / "aa").mkdir(parents=True)
    (tmp_path / "hub" / "aa" / "1").touch()
    growing = Growing(tmp_path, ["hub"])
    growing.changed()
    unreadable.add("aa")
    (tmp_path / "hub" / "aa" / "2").touch()
    assert list(messages(tmp_path, *growing.changed())) == []
    unreadable.clear()
    (added,) = messages(tmp_path, *growing.changed())
    assert added["put"] == "hub/aa/2"


def test_of_what_is_given_the_node_gets_first_what_it_lacks_and_then_what_changed(
    tmp_path: Path, unreadable: set[str]
) -> None:
    for name in ("heartbeats", "hub", "attempts", "replies"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.json").write_text("1")
    (tmp_path / "heartbeats" / ".2.json.tmp").touch()
    areas = {"given": ["heartbeats"], "growing": ["hub"], "flat": ["attempts"], "answers": ["replies"]}
    given = Given(tmp_path, areas)
    has = {"hub": ["folder"], "hub/old": ["folder"], **Growing(tmp_path, ["attempts"]).scan()}
    assert names_in(given.all(has)) == ["heartbeats", "heartbeats/1.json", "hub/1.json", "hub/old"]
    assert names_in(given.changes()) == []
    assert [names_in(given.answers()) for _ in range(2)] == [["replies", "replies/1.json"], []]
    (tmp_path / "heartbeats" / "1.json").write_text("12")
    (tmp_path / "attempts" / "2.json").touch()
    (tmp_path / "replies" / "2.json").touch()
    assert names_in(given.changes()) == ["attempts/2.json", "heartbeats/1.json"]
    assert names_in(given.answers()) == ["replies/2.json"]
    unreadable.add("heartbeats")
    assert names_in(given.changes()) == []
    unreadable.clear()
    (tmp_path / "heartbeats" / "1.json").unlink()
    assert names_in(given.changes()) == ["heartbeats/1.json"]


def test_answers_that_the_disk_could_not_read_are_returned_later(tmp_path: Path, unread: set[str]) -> None:
    (tmp_path / "replies").mkdir()
    for name in ("1.json", "2.json"):
        (tmp_path / "replies" / name).touch()
    given = Given(tmp_path, {"given": [], "growing": [], "flat": [], "answers": ["replies"]})
    unread.add("2.json")
    with pytest.raises(OSError, match="the disk fails"):
        given.answers()
    unread.clear()
    assert names_in(given.answers()) == ["replies", "replies/1.json", "replies/2.json"]
    assert given.answers() == []


def names_in(messages: Iterable[Message]) -> list[str]:
    """The names that messages are about."""
    return [next(message[kind] for kind in ("put", "folder", "remove") if kind in message) for message in messages]
