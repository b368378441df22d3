"""A pulse tells of its work, and never breaks it. Real files, sockets, threads and processes."""

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest
from real_runs import wait_until

from coral.cli.run_data.pulses import BeatFile
from heartbeats import Pulse, pulse as pulse_module
from heartbeats.beat import Beat, Status, from_dict
from heartbeats.beat_writer import FileWriter, cancel_file, earlier_file, writer_to
from heartbeats.pulse import LOOK, SLOW

SECONDS = 120.0


def beats_in(path: Path) -> list[Beat]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [from_dict(json.loads(line)) for line in lines]


def test_a_loop_is_shown_from_its_beginning_to_its_success(tmp_path: Path) -> None:
    beats: list[dict[str, object]] = []
    with Pulse("train", total=4, to=beats.append, checkpoint=tmp_path / "kept") as pulse:
        wait_until(lambda: beats)
        pulse.update(phase="fold", step=1, message="fold 1 of 4")
        wait_until(lambda: beats[-1]["progress"] == 0.25)
        pulse.update(step=4)
    first, *_, last = [from_dict(beat) for beat in beats]
    assert (first.status, first.progress, first.task, first.ttl) == (Status.RUNNING, None, "train", 60.0)
    assert (last.status, last.phase, last.progress, last.message) == (Status.SUCCESS, "fold", 1.0, "fold 1 of 4")
    assert len({beat["session"] for beat in beats}) == 1


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("no such fold"), Status.ERROR, "ValueError: no such fold"),
        (SystemExit(3), Status.ERROR, "SystemExit: 3"),
        (SystemExit(0), Status.SUCCESS, "at work"),
        (KeyboardInterrupt(), Status.CANCELLED, "KeyboardInterrupt"),
        (asyncio.CancelledError(), Status.CANCELLED, "CancelledError"),
    ],
)
def test_the_end_says_how_it_ended(tmp_path: Path, error: BaseException, status: Status, message: str) -> None:
    path = tmp_path / "beats"
    with pytest.raises(type(error)), Pulse("train", to=path, checkpoint=tmp_path / "kept") as pulse:  # noqa: PT012
        pulse.update(message="at work")
        raise error
    last = beats_in(path)[-1]
    assert (last.status, last.message) == (status, message)


def test_without_news_a_beat_comes_every_third_of_the_ttl(tmp_path: Path) -> None:
    times: list[float] = []
    with Pulse("silent", to=lambda beat: times.append(time.monotonic()), ttl=3, checkpoint=tmp_path / "kept"):
        wait_until(lambda: len(times) >= 6)
    assert median(later - earlier for earlier, later in pairwise(times[:6])) < 1.5


def test_each_call_of_a_task_is_a_pulse_and_one_within_it_a_phase(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    pulse = Pulse("train", to=path, checkpoint=tmp_path / "kept")

    @pulse.task
    def fold(number: int) -> int:
        return number + 1

    @pulse.task
    async def train() -> int:
        await asyncio.sleep(0)
        return fold(1)

    assert (fold(3), asyncio.run(train())) == (4, 2)
    ends = [beat for beat in beats_in(path) if beat.is_over]
    assert [(beat.status, beat.phase) for beat in ends] == [(Status.SUCCESS, "fold")] * 2
    assert len({beat.session for beat in ends}) == 2


def test_many_updates_cost_few_beats(tmp_path: Path) -> None:
    path, began = tmp_path / "beats", time.monotonic()
    with Pulse("busy", total=300_000, to=path, checkpoint=tmp_path / "kept") as pulse:
        for step in range(300_000):
            pulse.update(step, phase=f"part {step % 7}", message="at work")
    assert len(beats_in(path)) <= 3 + (time.monotonic() - began) / 0.2


def test_a_thread_has_a_pulse_of_its_own(tmp_path: Path) -> None:
    def work(name: str) -> None:
        with Pulse(name, to=tmp_path / "beats", checkpoint=tmp_path / name) as pulse:
            pulse.update(message=name)

    threads = [threading.Thread(target=work, args=(f"part-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = {beat.task for beat in beats_in(tmp_path / "beats") if beat.status is Status.SUCCESS}
    assert done == {f"part-{number}" for number in range(8)}


def work_with(pulse: Pulse) -> None:
    with pulse:
        pulse.update(message=f"in {os.getpid()}")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # 3.12 warns of a fork with threads
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_process_has_a_pulse_of_its_own(tmp_path: Path, method: str) -> None:
    path = tmp_path / "beats"
    context = multiprocessing.get_context(method)
    pulse = Pulse("train", to=path, checkpoint=tmp_path / "kept")
    child = context.Process(target=work_with, args=(pulse,))
    child.start()
    child.join(SECONDS)
    assert child.exitcode == 0
    assert [beat.message for beat in beats_in(path) if beat.is_over] == [f"in {child.pid}"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # 3.12 warns of a fork with threads
def test_an_open_pulse_does_nothing_in_a_forked_child(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    with Pulse("train", to=path, checkpoint=tmp_path / "kept") as pulse:
        wait_until(lambda: beats_in(path))
        child = multiprocessing.get_context("fork").Process(target=pulse.__exit__, args=(None, None, None))
        child.start()
        child.join(SECONDS)
        assert child.exitcode == 0
        assert not beats_in(path)[-1].is_over
    assert beats_in(path)[-1].status is Status.SUCCESS


TRAINING = """
import sys
from heartbeats import Pulse

with Pulse("train", total=5, to="beats", ttl=0.5) as pulse:
    for step in range((pulse.last_checkpoint or {"step": 0})["step"], 5):
        pulse.update(step=step + 1, message=f"step {step + 1}")
        pulse.checkpoint({"step": step + 1})
        print(step, flush=True)
        if step == 2 and "once" in sys.argv:
            sys.stdin.read()
"""


def training(folder: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", TRAINING, *words]
    return subprocess.Popen(argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_killed_and_started_again_it_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    first = training(tmp_path, "once")
    assert first.stdout is not None
    assert [first.stdout.readline() for _ in range(3)] == ["0\n", "1\n", "2\n"]
    first.kill()
    first.communicate()
    assert not beats_in(tmp_path / "beats")[-1].is_over
    assert (tmp_path / ".pulse" / ".gitignore").read_text() == "*\n"
    assert training(tmp_path).communicate()[0] == "3\n4\n"
    assert beats_in(tmp_path / "beats")[-1].status is Status.SUCCESS
    assert training(tmp_path).communicate()[0] == "0\n1\n2\n3\n4\n"  # a success leaves no checkpoint


def test_suspended_it_is_silent_and_afterwards_it_goes_on(tmp_path: Path) -> None:
    work, path = training(tmp_path, "once"), tmp_path / "beats"
    try:
        wait_until(lambda: any(beat.message == "step 3" for beat in beats_in(path)))
        os.kill(work.pid, signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{work.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        before = len(beats_in(path))
        time.sleep(0.5)  # a ttl, in which three would have come
        assert len(beats_in(path)) == before
        os.kill(work.pid, signal.SIGCONT)
        wait_until(lambda: len(beats_in(path)) > before)
    finally:
        os.kill(work.pid, signal.SIGCONT)
        work.communicate()
    assert beats_in(path)[-1].status is Status.SUCCESS


def test_a_checkpoint_is_whole_or_the_one_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = tmp_path / "deep" / "kept.json"
    with pytest.raises(ValueError, match="ends"), Pulse("train", checkpoint=kept) as pulse:  # noqa: PT012
        assert pulse.last_checkpoint is None
        assert pulse.checkpoint({"loss": 0.5})
        assert not pulse.checkpoint({"model": object()})
        assert "cannot keep the checkpoint: Object of type object" in pulse.problem
        raise ValueError("ends")
    assert Pulse("train", checkpoint=kept).last_checkpoint == {"loss": 0.5}
    kept.write_text('{"loss": ')
    broken = Pulse("train", checkpoint=kept)
    assert broken.last_checkpoint is None
    assert "cannot read the checkpoint" in broken.problem
    assert [entry.name for entry in kept.parent.iterdir()] == ["kept.json"]


@pytest.mark.parametrize("place", ["/dev/full", "no/such/folder/beats", "pipe", "x" * 200 + ".sock"])
def test_where_beats_cannot_be_written_the_work_goes_on(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")  # that nobody reads
    with caplog.at_level(logging.WARNING, "heartbeats"), Pulse("train", to=place) as pulse:
        wait_until(lambda: pulse.problem)
        pulse.update(message="it goes on")
    assert "cannot write a beat" in pulse.problem
    assert len(caplog.records) == 1


def test_a_checkpoint_on_a_full_disk_is_refused_and_the_work_goes_on() -> None:
    with Pulse("train", checkpoint="/dev/full/kept.json") as pulse:
        assert not pulse.checkpoint([1])
        assert pulse.last_checkpoint is None


def test_a_function_that_breaks_or_hangs_holds_nothing_up(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with Pulse("train", to=lambda beat: 1 / 0, checkpoint=tmp_path / "kept") as pulse:
        wait_until(lambda: pulse.problem == "cannot write a beat: ZeroDivisionError: division by zero")
    held = threading.Event()
    with Pulse("train", to=lambda beat: held.wait(), checkpoint=tmp_path / "kept") as pulse:
        pulse.update(1)
    held.set()


def test_what_the_work_gives_is_never_raised_back(tmp_path: Path) -> None:
    beats: list[dict[str, object]] = []
    with Pulse("train", total=3, to=beats.append, checkpoint=tmp_path / "kept") as pulse:
        pulse.update(step=float("nan"), message="x" * 5000 + "\x1b[2J")
        wait_until(lambda: beats and beats[-1]["message"])
        pulse.update(step="many", message=["a", "list"])  # type: ignore[arg-type]
        wait_until(lambda: pulse.problem)
        pulse.update(progress=7)
    last = from_dict(beats[-1])
    assert (last.status, last.progress, last.message) == (Status.SUCCESS, 1.0, "['a', 'list']")
    with pytest.raises(ValueError, match="ttl: expected seconds above 0"):
        Pulse("train", ttl=0)


def test_it_is_cancelled_through_its_file(tmp_path: Path) -> None:
    path = tmp_path / "beats"
    with Pulse("train", to=path, ttl=0.3, checkpoint=tmp_path / "kept") as pulse:
        wait_until(lambda: beats_in(path))
        cancel_file(path).write_text("another\n")
        before = len(beats_in(path))
        wait_until(lambda: len(beats_in(path)) > before + 1)
        assert not pulse.cancelled
        cancel_file(path).write_text(f"another\n{beats_in(path)[-1].session}\n")
        wait_until(lambda: pulse.cancelled)
    assert beats_in(path)[-1].status is Status.CANCELLED


def test_it_is_cancelled_through_its_socket_and_finds_a_reader_that_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    with Pulse("train", to="here.sock", ttl=0.3, checkpoint="kept") as pulse, socket.socket(socket.AF_UNIX) as server:
        time.sleep(0.1)  # in which the first beats find nobody
        server.bind("here.sock")
        server.listen()
        server.settimeout(SECONDS)
        reader = server.accept()[0]
        with reader, reader.makefile("rb") as lines:
            reader.settimeout(SECONDS)
            beat = from_dict(json.loads(lines.readline()))
            assert (beat.task, beat.status) == ("train", Status.RUNNING)
            reader.sendall(f"{beat.session}\n".encode())
            wait_until(lambda: pulse.cancelled)
            pulse.__exit__(None, None, None)
            *_, last = lines
            assert from_dict(json.loads(last)).status is Status.CANCELLED
            pulse.__enter__()
    assert pulse.problem == ""


def test_a_watcher_that_leaves_is_no_problem_and_the_next_one_hears_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Pulse("train", to="here.sock", ttl=0.3, checkpoint="kept") as pulse, socket.socket(socket.AF_UNIX) as server:
        server.bind("here.sock")
        server.listen()
        server.settimeout(SECONDS)
        for _ in range(3):
            reader = server.accept()[0]
            with reader, reader.makefile("rb") as lines:
                reader.settimeout(SECONDS)
                assert from_dict(json.loads(lines.readline())).task == "train"
    assert pulse.problem == ""


def test_a_file_of_beats_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "beats"
    monkeypatch.setattr("heartbeats.beat_writer.FILE_LIMIT", 1000)
    with Pulse("train", to=path, ttl=0.03, checkpoint=tmp_path / "kept"):
        wait_until(lambda: earlier_file(path).exists())
        first = earlier_file(path).stat().st_ino
        wait_until(lambda: earlier_file(path).stat().st_ino != first)
    assert {beat.task for beat in beats_in(earlier_file(path))} == {"train"}
    assert earlier_file(path).stat().st_size < 2000


def test_the_environment_names_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORAL_BEATS", str(tmp_path / "beats"))
    monkeypatch.setenv("CORAL_RUN", str(tmp_path / "a-run"))
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    with Pulse("train", checkpoint=tmp_path / "kept"):
        pass
    last = beats_in(tmp_path / "beats")[-1]
    assert (last.run, last.agent, last.status) == ("a-run", "agent-1", Status.SUCCESS)


class Resting:
    """A clock that a rest alone moves, and a place of which somebody begins to watch at some time."""

    def __init__(self, watched_at: float) -> None:
        self.clock, self.watched_at, self.looks = 1000.0, 1000.0 + watched_at, 0

    def wait(self, seconds: float) -> bool:
        self.clock += seconds
        return False

    def is_watched(self) -> bool:
        return self.clock >= self.watched_at

    def is_cancelled(self) -> bool:
        self.looks += 1
        return False


@pytest.mark.parametrize(
    ("watched_at", "wait", "rested"),
    [(0, 10, SLOW), (0, 0.5, 0.5), (99, 10, 10), (99, 0.5, 0.5), (4.5, 10, 5), (1.5, 10, SLOW)],
)
def test_between_beats_it_rests_longer_while_nobody_watches_and_looks_every_second(
    monkeypatch: pytest.MonkeyPatch, watched_at: float, wait: float, rested: float
) -> None:
    resting = Resting(watched_at)
    monkeypatch.setattr(pulse_module.time, "monotonic", lambda: resting.clock)
    Pulse("rests")._rest(cast(Any, resting), cast(Any, resting), resting.clock, wait)
    assert resting.clock - 1000.0 == pytest.approx(rested)
    assert resting.looks >= rested / LOOK


def test_who_watches_its_file_hears_more_often(tmp_path: Path) -> None:
    beats = tmp_path / "train.beats"
    alone, watched, heard = FileWriter(str(beats), "s"), FileWriter(str(beats), "s"), BeatFile(beats)
    assert not alone.is_watched()
    list(heard.new())
    assert watched.is_watched()
    assert writer_to(lambda beat: None, "s").is_watched()
    assert writer_to(tmp_path / "train.sock", "s").is_watched()  # else nobody hears a beat anyway
