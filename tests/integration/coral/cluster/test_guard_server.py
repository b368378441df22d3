"""The process that forks the guards of a worker: a forked guard is as one that is started, and none is lost with it."""

import contextlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from files import no_descriptor_left
from real_runs import is_alive, wait_until

from coral.cluster import node, spare_guard
from coral.cluster.shipping import Shipping

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are machines with Linux")

START = {"env": {"PATH": os.environ["PATH"]}, "python": False}
STARTED = "import sys; sys.path.insert(0, sys.argv[1]); from coral.cluster.guard import main; main(sys.argv[2], 0, 1)"
WORKER = """
import pickle, sys, time
from pathlib import Path
from coral.cluster import spare_guard
guard = spare_guard.start_guard(Path(sys.argv[1]), *pickle.load(sys.stdin.buffer))
print(spare_guard._servers[0]._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "private").mkdir()
    return node._kit(*Shipping().archive(tmp_path / "private"))


@pytest.fixture
def start(tmp_path, kit):
    """Starts guards, and lets them end after the test."""
    grades, guards = tmp_path / "grades", []
    grades.mkdir()

    def begin():
        guards.append(spare_guard.start_guard(grades, START, kit))
        return guards[-1], pid_of(guards[-1].place)

    spare_guard.close_server()
    yield begin
    for guard in guards:
        guard.close()
    spare_guard.close_server()
    wait_until(lambda: not list(grades.iterdir()), what="the end of the guards")


def pid_of(place):
    return json.loads(wait_until(lambda: (place / "guard.json").exists() and (place / "guard.json").read_text()))["pid"]


def server():
    return spare_guard._servers[0]._process.pid


def looks(pid):
    """What a process has from the one that started it."""
    here = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (here / "status").read_text().splitlines())
    names = ("SigBlk", "SigIgn", "SigCgt", "Threads", "Umask", "NoNewPrivs", "Seccomp", "Cpus_allowed", "Groups")
    fields = (here / "stat").read_text().rpartition(")")[2].split()
    streams = [str((here / "fd" / number).readlink()).rpartition("/")[2] for number in "012"]
    others = [path for path in (here / "fd").iterdir() if int(path.name) > 2]
    variables = sorted((here / "environ").read_bytes().split(b"\0"))
    return {
        **{name: status[name].strip() for name in names},
        "group and session are its own": [int(field) == pid for field in fields[2:4]],
        "nice": fields[16],
        "variables": variables,
        "folder": (here / "cwd").readlink(),
        "limits": re.sub(r"Max file locks.*", "", (here / "limits").read_text()),  # that is the mark of its folder
        "streams": streams,
        "others": sorted(str(path.readlink()).partition(":")[0] for path in others),
    }


def settled(pid):
    """What a guard looks like once it waits: at first it reads a file."""

    def found():
        with contextlib.suppress(OSError):
            return (seen := looks(pid))["others"] == ["pipe", "pipe"] and seen

    return wait_until(found, what="a guard that waits")


def test_a_forked_guard_is_as_one_that_is_started(tmp_path, start, kit):
    first, second = start(), start()
    place = tmp_path / "started"
    for name, data in kit.items():
        (place / "kit" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "kit" / name).write_bytes(data)
    (place / "start.json").write_text(json.dumps(START))
    there, alive = os.pipe()
    done, done_there = os.pipe()
    line = [sys.executable, "-P", "-c", STARTED.replace("0, 1", f"{there}, {done_there}"), place / "kit", place]
    with (place / spare_guard.ERRORS).open("ab") as errors:
        subprocess.run(
            line, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=(there, done_there), check=True,
            env=dict(os.environ),
        )  # fmt: skip
    for descriptor in (there, done_there):
        os.close(descriptor)
    started = pid_of(place)
    try:
        found = settled(started)
        assert settled(first[1]) == settled(second[1]) == found
        assert found["streams"] == ["null", "guard.err", "guard.err"]
    finally:
        for descriptor in (alive, done):
            os.close(descriptor)
        wait_until(lambda: not place.exists(), what="the end of the guard that was started")


def test_guards_are_forked_by_one_process_and_outlive_it(start):
    (_, first), pid = start(), server()
    (_, second) = start()
    assert server() == pid
    spare_guard.close_server()
    assert (is_alive(pid), is_alive(first), is_alive(second)) == (False, True, True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_was_killed_or_stopped_is_replaced(start, monkeypatch, number):
    monkeypatch.setattr(spare_guard, "FORK_SECONDS", 0.5)
    start()
    pid = server()
    os.kill(pid, number)
    start()
    assert (server() == pid, is_alive(pid)) == (False, False)


def test_a_worker_may_ignore_the_end_of_its_children(start):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        start()
        pid, (_, guard) = server(), start()
        assert is_alive(guard)
        assert server() == pid
    finally:
        signal.signal(signal.SIGCHLD, before)
    status = Path(f"/proc/{guard}/status").read_text()
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1], 16)
    assert not ignored >> (signal.SIGCHLD - 1) & 1, "it learns how a grader has ended"


def test_another_process_forks_the_guards_of_a_worker_with_other_variables(start, monkeypatch):
    start()
    pid = server()
    monkeypatch.setenv("RAY_JOB", "1")
    start()
    assert server() == pid
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    _, guard = start()
    assert (server() == pid, is_alive(pid)) == (False, False)
    assert b"CUDA_VISIBLE_DEVICES=3" in Path(f"/proc/{guard}/environ").read_bytes().split(b"\0")


def test_what_keeps_a_guard_from_beginning_is_told_and_nothing_is_left(tmp_path, kit):
    spare_guard.close_server()
    broken = {**kit, "coral/cluster/guard.py": b"raise RuntimeError('no such node')"}
    with no_descriptor_left():
        with pytest.raises(RuntimeError, match=r"the guard of the grade did not begin: (?s:.*)no such node"):
            spare_guard.start_guard(tmp_path, START, broken)
        spare_guard.close_server()
    assert [path.name for path in tmp_path.iterdir()] == ["private"]


def test_it_ends_with_its_worker(tmp_path, kit):
    (tmp_path / "grades").mkdir()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, tmp_path / "grades"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pickle.dump((START, kit), worker.stdin)
    worker.stdin.close()
    with worker.stdout as shown:
        pid = int(shown.readline())
    assert is_alive(pid)
    worker.kill()
    worker.wait()
    wait_until(lambda: not is_alive(pid), what="its end")
    wait_until(lambda: not list((tmp_path / "grades").iterdir()), what="the end of its guard")
