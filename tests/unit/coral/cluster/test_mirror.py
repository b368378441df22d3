"""Folders that are made the same on two sides, and what nobody may make of them."""

import os
from pathlib import Path
from typing import Any

import pytest
from files import deep_folder

from coral.cluster.mirror import PIECE, Receiver, kept, messages, remove, remove_unused, scan
from coral.grader.remove_tree import remove_tree

AREAS = ("clone", "state")


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "clone" / "src", here / "state", there):
        folder.mkdir(parents=True)
    (here / "clone" / "src" / "a.py").write_text("a = 1")
    (here / "clone" / "run.sh").write_text("true")
    (here / "clone" / "run.sh").chmod(0o755)
    (here / "clone" / "empty").mkdir()
    (here / "clone" / "shared").symlink_to("../shared")
    (here / "clone" / "slash").symlink_to("src/")
    (here / "state" / "large").write_bytes(os.urandom(3 * PIECE + 5))
    return here, there


@pytest.fixture
def deep(tmp_path: Path) -> Any:
    """Makes deep folders, which pytest could not remove."""
    yield deep_folder
    remove_tree(tmp_path)


def copy(source: Path, target: Path) -> list[str]:
    receiver = Receiver(target, target.with_name("aside"), AREAS)
    sent = list(messages(source, scan(target, AREAS), scan(source, AREAS)))
    assert all(map(receiver.take, sent))
    return receiver.apply()


def test_a_copy_is_the_same_and_is_not_sent_again(sides: tuple[Path, Path]) -> None:
    here, there = sides
    assert copy(here, there) == []
    assert scan(there, AREAS) == scan(here, AREAS)
    assert (there / "state" / "large").read_bytes() == (here / "state" / "large").read_bytes()
    assert (there / "clone" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert os.readlink(there / "clone" / "slash") == "src/"  # noqa: PTH115 - a Path would drop the slash
    assert list(messages(here, scan(there, AREAS), scan(here, AREAS))) == []


def test_what_was_changed_removed_or_became_something_else_is_so_there(sides: tuple[Path, Path]) -> None:
    here, there = sides
    copy(here, there)
    (here / "clone" / "src" / "a.py").write_text("a = 2, and longer")
    (here / "clone" / "empty").rmdir()
    (here / "clone" / "empty").write_text("a file now")
    (here / "clone" / "run.sh").unlink()
    (here / "clone" / "run.sh").mkdir()
    (here / "clone" / "run.sh" / "inner").write_text("x")
    (here / "state" / "large").unlink()
    assert copy(here, there) == []
    assert scan(there, AREAS) == scan(here, AREAS)


def test_objects_of_git_come_before_what_refers_to_them_and_locks_never(sides: tuple[Path, Path]) -> None:
    here, _ = sides
    for name in ("HEAD", "index.lock", "objects/aa/1"):
        (here / "clone" / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "clone" / ".git" / name).write_text(name)
    files = [message["put"] for message in messages(here, {}, scan(here, ["clone"])) if "put" in message]
    assert files[0] == "clone/.git/objects/aa/1"
    assert "clone/.git/index.lock" not in files


@pytest.mark.parametrize("name", ["/etc/passwd", "clone/../../x", "other/x", "clonex"])
def test_a_path_outside_the_areas_is_refused(sides: tuple[Path, Path], name: str) -> None:
    receiver = Receiver(sides[1], sides[1].with_name("aside"), AREAS)
    with pytest.raises(ValueError, match="is no path of the mirror"):
        receiver.take({"put": name, "data": b"", "at": 0, "mode": 0o644, "time": 0})


def test_no_link_is_followed_to_write_elsewhere(sides: tuple[Path, Path], tmp_path: Path) -> None:
    here, there = sides
    (tmp_path / "elsewhere").mkdir()
    copy(here, there)
    (there / "clone" / "src" / "a.py").unlink()
    (there / "clone" / "src").rmdir()
    (there / "clone" / "src").symlink_to(tmp_path / "elsewhere")
    receiver = Receiver(there, there.with_name("aside"), AREAS)
    receiver.take({"put": "clone/src/a.py", "data": b"x", "at": 0, "mode": 0o644, "time": 0})
    assert receiver.apply() == ["clone/src/a.py"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_file_is_read_through_a_link_that_was_laid_after_the_scan(sides: tuple[Path, Path], tmp_path: Path) -> None:
    here, _ = sides
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.py").write_text("secret")
    made = messages(here, {}, scan(here, ["clone"]))
    (here / "clone" / "src").rename(here / "clone" / "old")
    (here / "clone" / "src").symlink_to(tmp_path / "elsewhere")
    assert [message["put"] for message in made if "put" in message] == ["clone/run.sh"]


def test_nothing_is_in_its_place_before_all_of_it_has_come(sides: tuple[Path, Path]) -> None:
    here, there = sides
    receiver = Receiver(there, there.with_name("aside"), AREAS)
    for message in messages(here, {}, scan(here, AREAS)):
        receiver.take(message)
    assert list(there.iterdir()) == []
    receiver.apply()
    assert scan(there, AREAS) == scan(here, AREAS)


def test_folders_that_are_deeper_than_pythons_stack_are_read_and_removed(sides: tuple[Path, Path], deep: Any) -> None:
    here, there = sides
    (there / "clone").mkdir()
    deep(there / "clone" / "deep")
    assert len(scan(there, ["clone"])) > 1200
    remove(there, "clone/deep")
    assert list(scan(there, ["clone"])) == ["clone"]
    (here / "clone" / "a").write_text("x")
    deep(there / "clone" / "a")
    receiver = Receiver(there, there.with_name("aside"), AREAS)
    assert all(map(receiver.take, messages(here, {}, scan(here, ["clone/a"]))))
    assert (receiver.apply(), (there / "clone" / "a").read_text()) == ([], "x")


def test_a_mirror_that_was_not_used_for_long_is_removed_however_deep_it_is(tmp_path: Path, deep: Any) -> None:
    deep(tmp_path / "old")
    (tmp_path / "new").mkdir()
    os.utime(tmp_path / "old", (1, 1))
    remove_unused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_cannot_be_read_is_not_removed(sides: tuple[Path, Path], unreadable: set[str]) -> None:
    here, _ = sides
    before = scan(here, AREAS)
    unreadable.add("src")
    unread = set[str]()
    found = scan(here, AREAS, unread)
    assert (unread, before.keys() - found.keys()) == ({"clone/src"}, {"clone/src/a.py"})
    assert {**kept(before, unread), **found} == before


@pytest.mark.parametrize("message", [{"link": "clone", "to": "/"}, {"remove": "clone"}])
def test_a_folder_that_is_an_area_stays_a_folder(sides: tuple[Path, Path], message: dict[str, str]) -> None:
    receiver = Receiver(sides[0], sides[0].with_name("aside"), AREAS, folders=AREAS)
    with pytest.raises(ValueError, match="stays a folder"):
        receiver.take(message)


def test_a_piece_that_is_taken_again_is_there_once_and_one_that_is_gone_is_noticed(sides: tuple[Path, Path]) -> None:
    receiver = Receiver(sides[1], sides[1].with_name("aside"), AREAS)
    receiver.take({"piece": "clone/x", "data": b"ab", "at": 0})
    end = {"put": "clone/x", "data": b"c", "at": 1, "mode": 0o644, "time": 0}
    receiver.take(end)
    receiver.apply()
    assert (sides[1] / "clone" / "x").read_text() == "ac"
    with pytest.raises(OSError, match="a part of it is gone"):
        receiver.take(end)


def test_after_a_fault_of_the_disk_the_messages_go_on_with_the_same_file(tmp_path: Path, unread: set[str]) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    made = messages(tmp_path, {"z": ["folder"]}, scan(tmp_path, "abc"))
    assert next(made)["put"] == "a"
    unread.add("b")
    for _ in range(2):
        with pytest.raises(OSError, match="the disk fails"):
            next(made)
    unread.clear()
    assert [message.get("put") or message["remove"] for message in made] == ["b", "c", "z"]
