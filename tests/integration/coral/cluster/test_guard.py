"""What a guard and the worker that started it tell each other by two pipes, each of which holds 64 kB."""

import base64
import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.cluster import guard, node, spare_guard
from coral.cluster.guard_protocol import TAKEN
from coral.cluster.shipping import Shipping

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are machines with Linux")

START = {"env": {"PATH": os.environ["PATH"]}, "python": False}
LARGE = 3 << 20  # bytes of an order


@pytest.fixture
def begin(tmp_path):
    """Starts a guard, whose modules may be changed; nothing of one is left after the test."""
    (tmp_path / "private").mkdir()
    kit, grades, guards = node._kit(*Shipping().archive(tmp_path / "private")), tmp_path / "grades", []
    grades.mkdir()

    def begun(**changed):
        modules = {**kit, **{f"coral/cluster/{name}.py": data for name, data in changed.items()}}
        guards.append(spare_guard.start_guard(grades, START, modules))
        return guards[-1]

    spare_guard.close_server()
    yield begun
    for one in guards:
        one.close()
    spare_guard.close_server()
    wait_until(lambda: not list(grades.iterdir()), what="the end of the guards")


def order_of(begun, *argv):
    """An order to run a command, whose result is what it prints."""
    streams, env = ["stdout", "stderr"], {"PATH": os.environ["PATH"]}
    return {"argv": argv, "env": env, "cwd": str(begun.place), "timeout": 120.0, "result": "stdout", "streams": streams}


def printed(begun):
    assert wait_until(lambda: begun.is_done(1), what="its end")
    status = begun.status()
    assert status["code"] == 0
    return base64.b64decode(status["result"])


def long_result(begin):
    """A guard that waits in the midst of its status, since nobody reads it."""
    begun = begin()
    begun.begin(order_of(begun, "head", "-c", str(2 * guard.LARGEST), "/dev/zero"))
    assert wait_until(lambda: begun.is_done(1), what="its status")
    return begun, pid_of(begun)


def pid_of(begun):
    wait_until(lambda: (begun.place / "guard.json").exists(), what="the guard")
    return json.loads((begun.place / "guard.json").read_text())["pid"]


def test_an_order_and_a_result_may_be_longer_than_a_pipe(begin):
    begun = begin()
    begun.hold()
    begun.begin({**order_of(begun, "head", "-c", str(2 * guard.LARGEST), "/dev/zero"), "removed": ["x" * LARGE]})
    assert printed(begun) == bytes(guard.LARGEST)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can raise a priority")
def test_what_begins_in_advance_has_the_priority_of_its_worker_until_a_grade_has_it(begin):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    try:
        begun = begin()
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
    assert os.getpriority(os.PRIO_PROCESS, pid_of(begun)) == 5
    begun.hold()
    begun.begin(order_of(begun, "nice"))
    assert printed(begun) == b"0\n"


def test_no_signal_is_ignored_by_a_grader_though_a_script_has_started_the_node_in_the_background(begin):
    """There SIGINT and SIGQUIT are ignored, and after `nohup` SIGHUP; programs inherit that."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        begun = begin()
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    begun.hold()
    begun.begin(order_of(begun, "sed", "-n", "s/SigIgn:\t//p", "/proc/self/status"))
    ignored = int(printed(begun), 16)
    assert [number for number in numbers if ignored >> number - 1 & 1] == []


def test_a_guard_that_is_killed_in_the_midst_of_its_status_has_told_none(begin):
    begun, pid = long_result(begin)
    os.kill(pid, signal.SIGKILL)
    assert begun.status() is None
    node._end_unguarded(begun.place)


def test_a_guard_that_is_stopped_in_the_midst_of_its_status_tells_it_later(begin):
    begun, pid = long_result(begin)
    os.kill(pid, signal.SIGSTOP)
    goes_on = threading.Timer(0.2, os.kill, (pid, signal.SIGCONT))  # while the worker reads; sooner would do as well
    goes_on.start()
    assert printed(begun) == bytes(guard.LARGEST)


def test_a_worker_that_ends_in_the_midst_of_an_order_leaves_nothing(begin):
    begun = begin()
    begun.hold()
    whole = TAKEN + json.dumps({**order_of(begun, "true"), "removed": ["x" * LARGE]}).encode()
    os.write(begun._alive, whole[: 1 << 15])
    os.close(begun._alive)
    begun._alive = os.open(os.devnull, os.O_WRONLY)  # the fixture closes it
    wait_until(lambda: not begun.place.exists(), what="the end of its folder")
    assert begun.status() is None


def test_a_guard_that_has_ended_takes_no_order_however_long_it_is(begin):
    begun = begin()
    os.kill(pid_of(begun), signal.SIGKILL)
    assert wait_until(lambda: begun.is_done(1), what="its end")
    begun.hold()
    begun.begin({**order_of(begun, "true"), "removed": ["x" * LARGE]})
    assert begun.status() is None
    node._end_unguarded(begun.place)


def test_a_grader_has_none_of_the_pipes(begin):
    begun = begin()
    begun.begin(order_of(begun, "ls", "-l", "/proc/self/fd"))
    shown = printed(begun).decode().splitlines()
    assert [line for line in shown if "pipe:" in line or "socket:" in line] == []
    assert any(line.endswith("/dev/null") for line in shown)


def test_what_keeps_a_guard_from_running_a_grade_is_told(begin):
    begun = begin()
    begun.begin(order_of(begun, "no-such-program"))
    assert wait_until(lambda: begun.is_done(1), what="its end")
    assert begun.status() == {"problem": "FileNotFoundError: [Errno 2] No such file or directory: 'no-such-program'"}


def test_a_guard_that_cannot_write_who_it_is_leaves_nothing(begin):
    source = Path(guard.__file__).read_bytes()
    changed = source.replace(b"write(folder / GUARD, ", b"write(folder / 'none' / GUARD, ")
    assert changed != source
    begun = begin(guard=changed)
    begun.hold()
    assert wait_until(lambda: begun.is_done(1), what="its end")
    assert begun.status()["problem"].startswith("FileNotFoundError: ")
