"""Folders of a run that an agent took away, or laid something else in the place of."""

import os
import shutil

import pytest

from attempts.files import append_bytes, write_bytes
from coral.processes.process import open_output
from coral.supervisor.run_folders import RunFolders
from workspace.layout import Layout, create

PLACES = ("attempts", "attempts/inbox", "attempts/replies/ann", "heartbeats", "logs", "logs/ann", "requests/operator")


@pytest.fixture
def layout(tmp_path):
    made = Layout(tmp_path / "run")
    create(made, ["ann"])
    for folder in ("inbox/ann", "replies/ann"):
        (made.attempts / folder).mkdir(parents=True)
    return made


def restored(folders):
    return [(event.item, event.found, event.source) for event in folders.restore()]


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_with_a_link_in_its_place_is_put_back(layout, tmp_path, place):
    folders, folder, elsewhere = RunFolders(layout, ["ann"]), layout.root / place, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "kept").touch()
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(elsewhere)
    assert restored(folders) == [(f"the folder {place}", "was replaced by a link", "moved, as it was named")]
    assert (folder / "kept").is_file()
    assert not folder.is_symlink()
    assert restored(folders) == []


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_that_is_gone_is_made_again(layout, place):
    folders, folder = RunFolders(layout, ["ann"]), layout.root / place
    below = sorted(str(path.relative_to(layout.root)) for path in folder.rglob("*") if path.is_dir())
    shutil.rmtree(folder)
    made = [(f"the folder {name}", "was deleted", "memory") for name in (place, *below)]
    assert sorted(restored(folders)) == sorted(made)
    assert folder.is_dir()


def test_a_folder_that_is_made_again_is_as_open_as_before(layout):
    layout.attempts.chmod(0o2750)
    if os.geteuid() == 0:
        os.chown(layout.attempts / "inbox" / "ann", 12345, 12346)
    own = [layout.attempts, layout.attempts / "inbox" / "ann", layout.attempts / "replies"]
    before = [(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) for path in own]
    folders = RunFolders(layout, ["ann"])
    shutil.rmtree(layout.attempts)
    assert len(restored(folders)) == 5
    assert [(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) for path in own] == before


def test_a_file_in_the_place_of_a_folder_is_kept_beside_it(layout):
    folders = RunFolders(layout, ["ann"])
    shutil.rmtree(layout.heartbeats)
    layout.heartbeats.write_text("mine")
    assert [found for _, found, _ in restored(folders)] == ["was replaced by something else"]
    (kept,) = layout.root.glob(".heartbeats.foreign-*")
    assert (layout.heartbeats.is_dir(), kept.read_text()) == (True, "mine")


def test_a_run_that_was_moved_is_not_begun_again_in_its_old_place(layout, tmp_path):
    folders = RunFolders(layout, ["ann"])
    layout.root.rename(tmp_path / "elsewhere")
    assert restored(folders) == []
    assert not layout.root.exists()


def test_nothing_is_written_through_a_link_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("new", "log", "output"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    write_bytes(tmp_path / "new" / "file", b"ours", durable=True)
    assert (tmp_path / "new" / "file").read_bytes() == b"ours"
    with pytest.raises(NotADirectoryError):
        append_bytes(tmp_path / "log" / "file", b"ours")
    with pytest.raises(NotADirectoryError):
        open_output(tmp_path / "output" / "file")
    assert list((tmp_path / "elsewhere").iterdir()) == []
