"""`coral watch` follows real pulses of real processes, in a terminal, in a pipe and for programs."""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.cli.commands.watch import EXIT_NOT_ALL, _Screen
from coral.cli.run_data.pulse_board import PulseBoard
from coral.cli.run_data.pulses import BeatSocket, open_source
from coral.cli.ui.live_keys import Key
from coral.errors import CoralError
from heartbeats import Pulse, archive
from heartbeats.beat import Beat, Status
from heartbeats.beat_writer import cancel_file, earlier_file

SECONDS = 120.0
WATCH = [sys.executable, "-m", "coral", "watch"]
WORK = """
import sys, time
from heartbeats import Pulse

with Pulse(sys.argv[1], total=4, to=sys.argv[2], ttl=1.5, checkpoint="kept") as pulse:
    pulse.update(1, phase="fold", message="fold 1 of 4")
    while not pulse.cancelled:
        time.sleep(0.02)
"""


def watch(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WATCH, *map(str, words)], capture_output=True, text=True, timeout=SECONDS)


def work(folder: Path, name: str, to: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WORK, name, to], cwd=folder)


class Screen:
    """A terminal in which a command runs."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        self.theirs: int | None = theirs  # closed when the command has opened it too: before, it would be at its end
        env = {**os.environ, "COLUMNS": "110", "LINES": "20", "TERM": "xterm"}
        # Whoever leads a session and opens a terminal gets it as its own, from which alone keys are read.
        opens = ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs)]
        self.process = subprocess.Popen([*opens, *WATCH, *words], cwd=folder, env=env, start_new_session=True)
        self.shown = ""

    def wait_for(self, is_so: Callable[[str], object]) -> None:
        """Until what is shown from now on is so."""
        self.shown, deadline = "", time.monotonic() + SECONDS
        while not is_so(self.shown):
            assert time.monotonic() < deadline, self.shown
            if select.select([self.ours], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.ours, 65536).decode("utf-8", "replace")
                except OSError:  # the command has ended
                    assert is_so(self.shown), self.shown
                    return
                self.close_theirs()

    def close_theirs(self) -> None:
        if self.theirs is not None:
            os.close(self.theirs)
        self.theirs = None

    def press(self, key: str) -> None:
        os.write(self.ours, key.encode())


def last(shown: str) -> str:
    """The last board that was shown whole."""
    return shown.rpartition("j and k choose")[0].rpartition("last beat")[2]


@contextmanager
def screen(folder: Path, *words: str) -> Iterator[Screen]:
    made = Screen(folder, *words)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made.close_theirs()
        os.close(made.ours)


@pytest.mark.slow
def test_the_board_shows_the_living_and_the_dead_and_cancels_by_key(tmp_path: Path) -> None:
    suspended = work(tmp_path, "suspended", "a.beats")
    living = work(tmp_path, "living", "b.sock")
    try:
        wait_until(lambda: (tmp_path / "a.beats").exists())
        with screen(tmp_path, "a.beats", "b.sock") as board:
            board.wait_for(lambda text: "suspended" in text and "living" in text and "25%" in text and "█████" in text)
            os.kill(suspended.pid, signal.SIGSTOP)
            board.wait_for(lambda text: "dead" in last(text))
            os.kill(suspended.pid, signal.SIGCONT)
            board.wait_for(lambda text: last(text).count("running") == 2)
            for keys, process in (("c", suspended), ("jc", living)):
                board.press(keys)
                board.wait_for(lambda text: "press c once more to cancel" in text)
                board.press("c")
                assert process.wait(SECONDS) == 0
            board.wait_for(lambda text: text.count("cancelled") >= 2)
            assert board.process.wait(SECONDS) == EXIT_NOT_ALL
        assert not (tmp_path / "b.sock").exists()
    finally:
        for process in (suspended, living):
            process.kill()
            process.wait()


def test_q_leaves_the_board_and_says_that_not_all_have_ended(tmp_path: Path) -> None:
    with screen(tmp_path, "later.beats") as board:
        board.wait_for(lambda text: "no beats yet" in text)
        board.press("q")
        assert board.process.wait(SECONDS) == 2


def test_scripts_learn_the_outcome_from_the_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    assert watch("--timeout", "0", path).returncode == 2  # none has begun
    with Pulse("first", to=path, checkpoint=tmp_path / "kept") as pulse:
        pulse.update(progress=0.5, phase="load")
    whole = watch(path)
    assert (whole.returncode, whole.stdout.splitlines()[-1]) == (0, "first success 50% - load")
    with pytest.raises(ValueError), Pulse("second", to=path, checkpoint=tmp_path / "kept"):
        raise ValueError("no such fold")
    found = watch("--json", path)
    assert found.returncode == EXIT_NOT_ALL
    pulses = json.loads(found.stdout)["pulses"]
    assert [(one["task"], one["state"], one["message"]) for one in pulses] == [
        ("first", "success", ""),
        ("second", "error", "ValueError: no such fold"),
    ]


def test_what_a_file_tells_of_long_ago_is_told_as_it_was_then(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    rows = [("train", "running", 3600), ("train", "success", 3590), ("other", "running", 3500)]
    beats = [
        {
            "agent": "",
            "run": "",
            "launch": 1,
            "session": task,
            "task": task,
            "status": status,
            "phase": "fold",
            "progress": None,
            "message": "",
            "timestamp": (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(),
            "ttl": 60,
        }
        for task, status, ago in rows
    ]
    path.write_text("".join(f"{json.dumps(beat)}\n" for beat in beats))
    found = watch("--plain", path)
    assert found.stdout.splitlines() == [
        "train running - fold",
        "train success - fold",
        "other running - fold",
        "other dead - fold",
    ]
    assert found.returncode == EXIT_NOT_ALL


def test_the_supervisors_of_two_runs_are_two_lines(tmp_path: Path) -> None:
    places = [tmp_path / run / "beats.jsonl" for run in ("first", "second")]
    for place, status in zip(places, (Status.SUCCESS, Status.RUNNING), strict=True):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        place.parent.mkdir()
        whose = {"session": "supervisor", "task": "supervisor"}
        archive.append(place, Beat(place.parent.name, "", 0, status, "here", None, "", now, 60.0, **whose))
    found = watch("--plain", "--timeout", "1", *places)
    assert (found.returncode, found.stdout) == (2, "supervisor success - here\nsupervisor running - here\n")


def test_pulses_without_a_session_are_lines_of_their_own_and_the_first_c_asks(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    for task in ("first", "second"):
        archive.append(path, Beat("", "", 0, Status.RUNNING, "here", None, "", now, 60.0, task=task))
    assert watch("--plain", "--timeout", "0", path).stdout == "first running - here\nsecond running - here\n"
    source = open_source(path)
    shown = _Screen(PulseBoard([source]), lambda: True)
    shown.board.update(0.0)
    shown._obey([Key("c")])
    assert shown.note == "press c once more to cancel first"
    shown._obey([Key("j"), Key("c")])
    assert shown.note == "press c once more to cancel second"
    shown._obey([Key("c")])
    assert shown.note == "cannot cancel second: its beats name no session"
    source.close()


def test_what_cannot_be_watched_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = watch(tmp_path)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        1,
        f"coral: cannot watch {tmp_path}: it is a folder",
    )
    with pytest.raises(CoralError, match="there is no folder"):
        open_source(Path("no/such.beats"))
    here = BeatSocket(Path("here.sock"))
    with pytest.raises(CoralError, match="somebody listens on it already"):
        BeatSocket(Path("here.sock"))
    here.close()
    os.mkfifo("pipe")
    with pytest.raises(CoralError, match="it is neither a file nor a socket"):
        open_source(Path("pipe"))
    Path("file.sock").touch()
    with pytest.raises(CoralError, match=r"it is a file, and \.sock names a socket"):
        open_source(Path("file.sock"))
    with pytest.raises(CoralError, match="File name too long"):
        open_source(tmp_path / ("x" * 300))
    with pytest.raises(CoralError, match="cannot listen"):
        BeatSocket(tmp_path / f"{'x' * 120}.sock")


def test_a_socket_that_was_left_is_taken_over_and_foreign_bytes_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    left = socket.socket(socket.AF_UNIX)
    left.bind("here.sock")
    left.close()
    source = BeatSocket(Path("here.sock"))
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect("here.sock")
        stranger.sendall(b'\xff\n{"run": 3}\n[1]\n' + b"x" * 200_000)
        assert list(source.new()) == []
    with Pulse("train", to="here.sock", checkpoint="kept"):
        pass
    assert [beat.status for beat in source.new()][-1] == "success"
    source.close()


def test_an_emptied_file_is_read_from_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    with Pulse("train", to=path, checkpoint=tmp_path / "kept"):
        pass
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"torn": "' + b"x" * 100)
    source = open_source(path)
    assert [beat.status for beat in source.new()][-1] == "success"
    path.write_bytes(whole.splitlines(keepends=True)[0])
    assert [beat.task for beat in source.new()] == ["train"]
    source.close()


def test_a_file_is_read_on_after_it_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "beats"
    source = open_source(path)
    assert list(source.new()) == []
    monkeypatch.setattr("heartbeats.beat_writer.FILE_LIMIT", 1)
    for name in ("first", "second", "third"):
        with Pulse(name, to=path, checkpoint=tmp_path / "kept"):
            pass
        assert {beat.task for beat in source.new()} <= {name}
    assert earlier_file(path).exists()
    path.write_text("")
    monkeypatch.undo()
    with Pulse("fourth", to=path, checkpoint=tmp_path / "kept"):
        pass
    assert {beat.task for beat in source.new()} == {"fourth"}
    source.cancel("a-session")
    assert cancel_file(path).read_text() == "a-session\n"
    source.close()
