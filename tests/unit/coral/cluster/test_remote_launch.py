"""What the local process of a launch does with what its node has sent."""

import errno
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from shortages import full_disk

from coral.cluster.growing import Given
from coral.cluster.orders import WINDOW
from coral.cluster.remote_launch import NotRunError, RemoteLaunch

INBOX = "attempts/inbox/agent-1"
AREAS = {
    "own": ["workspace/agents/agent-1"],
    "knowledge": "workspace/shared",
    "given": [],
    "growing": [],
    "flat": [],
    "up": {INBOX: "attempts/replies/agent-1"},
    "answers": [],
}


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("coral.cluster.remote_launch.DISK_SECONDS", 0.0)
    for name in (INBOX, "workspace/agents/agent-1", "workspace/shared", "b"):
        (tmp_path / name).mkdir(parents=True)
    places = {
        "lost": str(tmp_path / "lost"),
        "root": str(tmp_path),
        "bridge": str(tmp_path / "b"),
        "aside": str(tmp_path / "aside"),
        "beats": str(tmp_path / "beats"),
    }
    made = RemoteLaunch({"areas": AREAS, "agent": "agent-1", "number": 2, "wait": 1, "home": "/home/a", **places})
    made._node.ready = {"env": {"HOME": "/home/node"}}
    return made


def test_a_submission_that_the_disk_has_no_room_for_is_written_later_and_after_the_work(
    launch: Any, tmp_path: Path
) -> None:
    put = {"data": b"{}", "at": 0, "mode": 0o644, "time": 0}
    work = {"put": "workspace/agents/agent-1/x", **put}
    events = [work, {"apply": True}, {"file": f"{INBOX}/1.json", "put": f"{INBOX}/1.json", **put}]
    launch._take({"events": events, "at": 0})
    with full_disk():
        assert launch._handle_all() is None
    assert launch._answers() == [], "the node still has it to send"
    launch._take({"events": events, "at": 0})  # by another connection
    launch._handle_all()
    assert (tmp_path / INBOX / "1.json").read_bytes() == (tmp_path / work["put"]).read_bytes() == b"{}"
    (tmp_path / INBOX / "1.json").unlink()
    assert launch._answers() == [{"remove": f"{INBOX}/1.json"}]


@pytest.mark.parametrize("event", [{"link": INBOX, "to": "/"}, {"link": "workspace/agents/agent-1", "to": "/"}])
def test_a_node_replaces_no_folder_of_the_run(launch: Any, tmp_path: Path, event: dict[str, str]) -> None:
    launch._take({"events": [event, {"apply": True}], "at": 0})
    launch._handle_all()
    assert not (tmp_path / event["link"]).is_symlink()


@pytest.mark.parametrize("last", [f"{'é' * 90}.json", "\0.json", "\ud800.json"], ids=["long", "zero", "surrogate"])
def test_a_name_that_no_file_can_have_blocks_no_later_event(launch: Any, tmp_path: Path, last: str) -> None:
    put = {"data": b"{}", "at": 0, "mode": 0o644, "time": 0}
    names = [f"{INBOX}/{last}", f"{INBOX}/{'é' * 900}", f"{INBOX}/1.json"]
    launch._take({"events": [{"file": name, "put": name, **put} for name in names], "at": 0})
    launch._handle_all()
    assert [path.name for path in (tmp_path / INBOX).iterdir()] == ["1.json"]


def test_what_has_no_place_here_is_left_out_and_what_the_disk_refuses_is_not(
    launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [errno.EIO, errno.ENAMETOOLONG, errno.EACCES]

    def touch() -> None:
        if errors:
            raise OSError(errors.pop(0), "no")

    monkeypatch.setattr(launch, "_touch", touch)
    launch._take({"events": [{"life": True}] * 3, "at": 0})
    launch._handle_all()
    assert launch._seen == 0
    launch._handle_all()
    assert launch._seen == 3


def test_a_node_writes_to_the_output_of_the_launch_alone(launch: Any, capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    launch._take({"events": [{"output": number, "data": b"x"} for number in (writing, 1, 2)], "at": 0})
    launch._handle_all()
    os.close(writing)
    assert os.read(reading, 10) == b""
    os.close(reading)
    assert capfd.readouterr() == ("x", "x")


READY: dict[str, Any] = {"root": "/n", "python": "p", "env": {}, "has": {}, "knowledge": {}, "keeps": False}
PROGRAM = {"python": sys.executable, "cwd": "", "stdin": "in", "stdout": "o", "stderr": "e", "argv": ["a"], "tag": "t"}


def test_a_launch_begins_once_this_machine_can_read_what_its_node_needs(
    launch: Any, tmp_path: Path, unread: set[str]
) -> None:
    launch._spec.update(PROGRAM, kept=str(tmp_path / "kept"))
    (tmp_path / "in").write_text("the prompt")
    (tmp_path / "workspace" / "shared" / "note.md").write_text("n")
    unread.add("shared")
    launch._take({"events": [{"ready": READY}], "at": 0})
    launch._handle_all()
    launch._link.pump()
    assert (orders(launch), launch._is_begun) == ([], False)
    unread.clear()
    launch._handle_all()
    launch._link.pump()
    assert [order["knowledge"] for order in orders(launch) if "knowledge" in order] == ["note.md"]
    assert "start" in orders(launch)[-1]


def test_a_launch_begins_although_a_shared_file_changes_all_the_time(
    launch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch._spec.update(PROGRAM, kept=str(tmp_path / "kept"))
    (tmp_path / "in").write_text("the prompt")
    notes, changed = [f"note {number}" for number in range(5)], launch._knowledge.changed

    def change() -> Any:
        (tmp_path / "workspace" / "shared" / "note.md").write_text(notes.pop(0))
        return changed()

    monkeypatch.setattr(launch._knowledge, "changed", change)
    launch._take({"events": [{"ready": READY}], "at": 0})
    launch._handle_all()
    launch._link.pump()
    assert [order["data"] for order in orders(launch) if "knowledge" in order] == [b"note 0"]
    assert "start" in orders(launch)[-1]


def test_a_node_that_is_slow_gets_the_last_version_of_a_shared_file(launch: Any, tmp_path: Path) -> None:
    launch._link._bytes = WINDOW
    for number in range(3):
        (tmp_path / "workspace" / "shared" / "note.md").write_text(f"note {number}")
        launch._give(all_of_it=True)
    launch._link._bytes = 0
    for _ in range(2):
        launch._link.pump()
        launch._give(all_of_it=True)
    launch._link.pump()
    assert [order["data"] for order in orders(launch) if "knowledge" in order] == [b"note 0", b"note 2"]


def test_of_two_changes_of_one_note_at_the_same_moment_none_is_lost(
    launch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = RemoteLaunch({**launch._spec, "agent": "agent-2", "aside": str(tmp_path / "aside-2")})
    other._take({"events": [{"knowledge": "note.md", "data": b"of the other", "base": None}], "at": 0})
    second, digest_of = threading.Thread(target=other._handle_all), launch._knowledge.digest_of

    def found(name: str) -> Any:
        before = digest_of(name)
        second.start()
        second.join(0.5)
        return before

    monkeypatch.setattr(launch._knowledge, "digest_of", found)
    launch._take({"events": [{"knowledge": "note.md", "data": b"of the first", "base": None}], "at": 0})
    launch._handle_all()
    second.join()
    notes = {path.read_bytes() for path in (tmp_path / "workspace" / "shared").iterdir()}
    assert notes == {b"of the first", b"of the other"}


def test_an_answer_is_sent_once_what_comes_before_it_can_be_read(launch: Any, tmp_path: Path, unread: set[str]) -> None:
    (tmp_path / "workspace" / "shared" / "note.md").write_text("n")
    launch._due = [{"remove": "1.json"}]
    unread.add("shared")
    with pytest.raises(OSError, match="the disk fails"):
        launch._give(all_of_it=False)
    launch._link.pump()
    unread.clear()
    launch._give(all_of_it=False)
    launch._link.pump()
    assert [next(iter(order)) for order in orders(launch)] == ["knowledge", "remove", "apply"]
    assert launch._due == []


def test_a_signal_passes_what_cannot_be_read_which_is_sent_later(launch: Any, tmp_path: Path, unread: set[str]) -> None:
    launch._is_begun = True
    launch._state = Given(tmp_path, {**AREAS, "given": ["status.json"]})
    (tmp_path / "status.json").touch()
    unread.add("status.json")
    waking, woken = os.pipe()
    os.write(woken, bytes([signal.SIGINT]))
    launch._due = [{"remove": "1.json"}]
    launch._take_signals(waking)
    assert orders(launch) == [{"signal": signal.SIGINT}]
    unread.clear()
    launch._give(all_of_it=False)
    launch._link.pump()
    assert [next(iter(order)) for order in orders(launch)] == ["signal", "put", "remove", "apply"]
    for pipe in (waking, woken):
        os.close(pipe)


def test_until_its_program_has_started_a_launch_gives_signs_of_life(launch: Any, tmp_path: Path) -> None:
    beats = tmp_path / "beats"
    launch._is_begun = True
    launch._check()
    assert beats.exists()
    beats.unlink()
    launch._check()
    assert not beats.exists(), "not at each look"
    launch._touched, launch._started = 0.0, time.monotonic()
    launch._check()
    assert not beats.exists(), "the node says from now on whether it lives"


def orders(launch: Any) -> list[dict[str, Any]]:
    """All that were numbered: there is no node that takes them."""
    return [order for _, order in launch._link._sent]


def test_a_link_to_the_home_of_the_node_leads_to_the_users(launch: Any, tmp_path: Path) -> None:
    link = {"link": "workspace/agents/agent-1/login", "to": "/home/node/login"}
    launch._take({"events": [link, {"apply": True}], "at": 0})
    launch._handle_all()
    assert str((tmp_path / link["link"]).readlink()) == "/home/a/login"


def test_that_the_node_was_lost_is_said_in_a_file_once_the_program_had_begun(launch: Any, tmp_path: Path) -> None:
    with pytest.raises(NotRunError, match="cannot run on the cluster: its node was lost: it died"):
        launch._take({"lost": "it died"})
    assert not (tmp_path / "lost").exists()
    launch._started = time.monotonic() - 10
    with pytest.raises(NotRunError, match="its node was lost: it died"):
        launch._take({"lost": "it died"})
    assert (tmp_path / "lost").read_text() == "2"
