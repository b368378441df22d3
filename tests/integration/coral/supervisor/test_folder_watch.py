"""Notifications: quick where they work, found out where they do not, and never needed."""

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from real_runs import wait_until
from sample import submission
from shortages import no_more_threads
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from attempts.inbox import next_id, submit
from attempts.record import to_dict
from coral.supervisor.folder_watch import FolderWatch
from coral.supervisor.perform import answer_request
from workspace.layout import Layout


@pytest.fixture
def rung() -> threading.Event:
    return threading.Event()


@pytest.fixture
def inbox(tmp_path) -> Path:
    folder = tmp_path / "inbox"
    (folder / "agent-1").mkdir(parents=True)
    return folder


@pytest.fixture
def watch(inbox: Path, rung: threading.Event):
    watching = FolderWatch((inbox,), rung.set)
    assert watching.keep_alive() == ""
    yield watching
    watching.close()


def put(folder: Path, name: str = "1.json") -> None:
    (folder / f".{name}").write_text("{}")
    (folder / f".{name}").rename(folder / name)


def test_a_file_that_is_moved_into_place_rings(watch, inbox, rung):
    put(inbox / "agent-1")
    assert rung.wait(120)
    assert watch.take() == {inbox / "agent-1"}
    assert not watch.take()


def test_what_is_handed_in_or_answered_comes_without_a_rename(tmp_path):
    """Of a rename whose two halves are read apart, watchdog tells half a second late."""
    root = tmp_path / "run"
    layout = Layout(root)
    seen: list[FileSystemEvent] = []
    handler = FileSystemEventHandler()
    handler.on_any_event = seen.append
    for folder in (root / "attempts" / "inbox" / "agent-1", layout.replies_to("agent-1")):
        folder.mkdir(parents=True)
    observer = Observer()
    observer.schedule(handler, str(root), recursive=True)
    observer.start()
    try:
        paths = {
            str(submit(layout.attempts, to_dict(submission(id=next_id(""))))),
            str(layout.replies_to("agent-1") / "7.json"),
        }
        answer_request(layout, "agent-1", "7", {"ok": True})
        wait_until(lambda: paths <= {event.src_path for event in seen} | {event.dest_path for event in seen})
    finally:
        observer.stop()
        observer.join()
    assert not [event for event in seen if event.event_type == "moved"]


def test_drafts_and_our_own_replies_do_not_ring(tmp_path):
    folder = tmp_path / "inbox"
    for name in ("agent-1", "agent-2", "replies/agent-1"):
        (folder / name).mkdir(parents=True)
    watching = FolderWatch((folder,), lambda: None)
    assert watching.keep_alive() == ""
    put(folder / "replies" / "agent-1")
    (folder / "agent-1" / ".draft.json").write_text("{}")
    (folder / "agent-1" / "note.txt").write_text("")
    # Notices come in their order, however late: when this one is here, those before it would be, too.
    (folder / "agent-2" / "1.json").write_text("{}")
    touched: set[Path] = set()
    wait_until(lambda: bool(touched.update(watching.take()) or touched))
    watching.close()
    assert touched == {folder / "agent-2"}


def test_a_folder_that_was_made_anew_is_watched_again(watch, inbox, rung):
    shutil.rmtree(inbox)
    inbox.mkdir()
    deadline = time.monotonic() + 120
    while not rung.is_set() and time.monotonic() < deadline:  # as the poll does; the notice of the end may be late
        assert watch.keep_alive() == ""
        put(inbox)
        rung.wait(0.1)
    assert rung.is_set()


def test_a_folder_that_cannot_be_watched_is_told(tmp_path, rung):
    watching = FolderWatch((tmp_path / "absent",), rung.set)
    assert "absent" in watching.keep_alive()
    watching.close()


def test_where_no_thread_can_be_started_it_is_told_and_tried_again(inbox, rung):
    watching = FolderWatch((inbox,), rung.set)
    with no_more_threads():
        assert "thread" in watching.keep_alive()
    assert watching.keep_alive() == ""
    put(inbox / "agent-1")
    assert rung.wait(120)
    watching.close()


def test_a_dead_observer_is_replaced(watch, inbox, rung):
    watch.close()
    assert watch.keep_alive() == ""
    put(inbox / "agent-1", "2.json")
    assert rung.wait(120)


def test_looking_into_a_watched_folder_is_no_news(watch, inbox, rung):
    """A poll opens and closes a thousand folders: to be told of that would cost more than the poll."""
    heard = []
    for emitter in watch._observer.emitters:
        emitter.queue_event = heard.append
    for _ in range(20):
        assert list((inbox / "agent-1").iterdir()) == []
    put(inbox / "agent-1")
    wait_until(lambda: any(str(event.dest_path or event.src_path).endswith("/1.json") for event in heard))
    assert not [event for event in heard if event.event_type in ("opened", "closed_no_write")]


LIMITED = """
import pathlib, sys, threading
sys.path.insert(0, sys.argv[2])
from attempts.record import Kind, Submission
from attempts.store import Store
from coral.supervisor.folder_watch import FolderWatch
from workspace.layout import Layout
root, limit, rung = pathlib.Path(sys.argv[1]), pathlib.Path("/proc/sys/user") / sys.argv[3], threading.Event()
try:
    limit.write_text(sys.argv[4])
except OSError:
    sys.exit(77)
watch = FolderWatch((root / "inbox", root / "requests"), rung.set)
print(watch.keep_alive() or "nothing is lacking")
before = threading.active_count()
print(watch.keep_alive() == watch.keep_alive())
print(threading.active_count() - before)
watch.close()
"""


@pytest.mark.parametrize(
    ("limit", "most", "lacking"),
    [
        ("max_inotify_watches", "100", "nothing is lacking"),
        ("max_inotify_watches", "15", "the system's watches are used up, 15 of 22 folders have one"),
        ("max_inotify_watches", "11", "inotify watch limit reached"),
        ("max_inotify_instances", "0", "inotify instance limit reached"),
    ],
)
def test_limits_of_the_system_are_told(tmp_path, limit, most, lacking):
    """In a user namespace of its own, which has limits of its own. Where a part is watched, the rest is polled."""
    for folder in ("inbox", "requests"):
        for number in range(10):
            (tmp_path / folder / f"agent-{number}").mkdir(parents=True)
    root = str(Path(__file__).parents[4])
    command = [sys.executable, "-c", LIMITED, str(tmp_path), root, limit, most]
    ran = subprocess.run(["unshare", "-Ur", *command], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode in (1, 77) and "Traceback" not in ran.stderr:
        pytest.skip("no user namespaces, or none with limits of its own, on this machine")
    told, steady, threads = ran.stdout.splitlines()
    assert lacking in told, ran.stderr
    assert steady == "True"
    assert threads == "0"
