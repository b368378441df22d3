"""Real processes: blocked until released, identified by more than a pid, and ended with all they started."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from real_runs import wait_until

from coral.processes import process, process_tree
from coral.processes.launch_tags import LaunchTags
from coral.processes.launches import Launches, LaunchState
from coral.processes.process import NEVER_RELEASED, Program
from coral.processes.wakeup import Wakeup

TAG = f"run-{os.getpid()}/agent-1/1"  # tests at the same time have others: whatever has it is ended
DEAF = "trap '' INT TERM; "


@pytest.fixture
def make(tmp_path) -> Callable[..., Program]:
    def build(script: str, tag: str = TAG, env: dict[str, str] | None = None) -> Program:
        stdin = tmp_path / "prompt.md"
        stdin.write_text("the prompt\n")
        return Program(
            argv=["/bin/sh", "-c", script],
            env=env if env is not None else dict(os.environ),
            cwd=tmp_path,
            stdin=stdin,
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            tag=tag,
        )

    return build


@pytest.fixture
def started(make: Callable[..., Program]):
    """Starts a program and releases it; whatever is left of it is killed at the end."""
    running = []

    def run(script: str, **kwargs: object) -> process.HeldChild:
        held = process.start(make(script, **kwargs))
        running.append(held)
        held.release()
        return held

    yield run
    for held in running:
        process.kill(held.identity, TAG)
        held.child.wait(120)


def test_a_device_is_written_to_and_never_renamed(make: Callable[..., Program]) -> None:
    master, slave = os.openpty()
    held = process.start(replace(make("echo heard"), stdout=Path(os.ttyname(slave))))
    held.release()
    assert held.child.wait(120) == 0
    assert os.read(master, 100).split() == [b"heard"]
    os.close(master)
    os.close(slave)


def test_a_program_starts_only_when_it_is_released(make, tmp_path):
    held = process.start(make("cat; echo ran > ran"))
    assert process_tree.is_alive(held.identity)
    assert not (tmp_path / "ran").exists()
    held.release()
    assert held.child.wait(120) == 0
    assert (tmp_path / "ran").exists()
    assert (tmp_path / "out").read_text() == "the prompt\n"


def test_an_abandoned_child_never_becomes_the_program(make, tmp_path):
    held = process.start(make("echo ran > ran"))
    held.abandon()
    assert held.child.returncode == NEVER_RELEASED
    assert not (tmp_path / "ran").exists()


def test_the_program_has_the_recorded_pid(started, tmp_path):
    held = started("echo $$ > pid; sleep 600")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    assert int((tmp_path / "pid").read_text()) == held.identity.pid
    assert os.getsid(held.identity.pid) == held.identity.pid


def test_a_program_that_cannot_be_started_raises(make, tmp_path):
    with pytest.raises(OSError):
        process.start(replace(make("true"), cwd=tmp_path / "absent"))


def test_another_process_with_the_same_pid_is_another_identity(started):
    held = started("sleep 600")
    assert process_tree.is_alive(held.identity)
    older = replace(held.identity, started=held.identity.started - 1)
    assert not process_tree.is_alive(older)
    process.interrupt(older)
    assert process_tree.members(replace(held.identity, boot="another boot"), TAG) == []
    assert held.child.poll() is None


def test_a_zombie_is_not_alive(started):
    held = started("exit 0")
    wait_until(lambda: process_tree.identify(held.identity.pid) is None)
    assert not process_tree.is_alive(held.identity)
    assert process_tree.members(held.identity, TAG) == []


def test_children_that_ignore_signals_are_found_and_killed(started, tmp_path):
    """A grandchild in a session of its own, a daemon forked twice, and one that gave up its environment's tag."""
    held = started(
        DEAF
        + f"setsid sh -c '{DEAF} echo $$ > one; sleep 600' & "
        + f"(setsid sh -c '{DEAF} echo $$ > two; sleep 600' &) ; "
        + f"env -i sh -c '{DEAF} echo $$ > three; sleep 600' & "
        + "wait; sleep 600"
    )
    names = ("one", "two", "three")
    wait_until(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text().strip() for name in names))
    pids = {int((tmp_path / name).read_text()) for name in names}
    found = {member.pid for member in process_tree.members(held.identity, TAG)}
    assert pids | {held.identity.pid} <= found
    process.interrupt(held.identity)
    process.terminate(held.identity, TAG)
    assert held.child.poll() is None
    process.kill(held.identity, TAG)
    held.child.wait(120)
    wait_until(lambda: not process_tree.members(held.identity, TAG))
    assert not any(process_tree.identify(pid) for pid in pids)


def test_who_waits_for_a_kill_finds_no_process_left(started, monkeypatch) -> None:
    """Like the kernel, which ends a process later than it is asked to, and fork, which adds one in that time."""
    held = started("sleep 600 & sleep 600 & wait")
    wait_until(lambda: len(process_tree.members(held.identity, TAG)) == 3, what="what it starts")
    kill, calls = process._signal_all, []

    def kill_late(processes: Sequence[process_tree.Identity], number: signal.Signals) -> None:
        calls.append(number)
        if len(calls) > 5:
            kill(processes, number)

    monkeypatch.setattr(process, "_signal_all", kill_late)
    process.kill_and_wait(held.identity, TAG)
    assert not process_tree.members(held.identity, TAG)
    assert set(calls) == {signal.SIGKILL}


def test_an_ignored_interrupt_is_not_inherited(make, tmp_path):
    """As under `nohup`, or in the background of a script: there SIGINT is ignored, and stays so through every exec."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; import os\n"
        "from coral.processes import process\n"
        "process.rearm_interrupts()\n"
        "here = Path(sys.argv[1])\n"
        "files = Path(os.devnull), here / 'o', here / 'e'\n"
        "program = process.Program(['sleep', '600'], dict(os.environ), here, *files, 'nohup/a/1')\n"
        "held = process.start(program); held.release()\n"
        "import time\n"
        "line = Path(f'/proc/{held.identity.pid}/cmdline')\n"
        "while not line.read_bytes().startswith(b'sleep'): time.sleep(0.005)\n"
        "process.interrupt(held.identity)\n"
        "print(held.child.wait(100))\n"
    )
    root = str(Path(__file__).parents[4])
    shell = 'trap "" INT; exec "$@"'
    ran = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-c", script, str(tmp_path), root],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout.strip() == str(-signal.SIGINT), ran.stderr


GIVEN_AGAIN = """
import os, pathlib, subprocess, sys
sys.path.insert(0, sys.argv[2])
from coral.processes import process, process_tree
here, tag = pathlib.Path(sys.argv[1]), sys.argv[3]
last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
files = pathlib.Path(os.devnull), here / "out", here / "err"
program = process.Program(["/bin/sleep", "600"], dict(os.environ), here, *files, tag)
held = process.start(program)
held.release()
kept = process_tree.ProcessTable()
kept.scan()
assert [found.pid for found in kept.members(held.identity, tag)] == [held.identity.pid]
kept.members(process_tree.Identity(1, 0, held.identity.boot), "another")  # it has read everybody's tag
held.child.kill()
held.child.wait()
while True:  # a start time has a resolution of a hundredth of a second
    try:
        last.write_text(str(held.identity.pid - 1))
    except OSError:
        sys.exit(77)
    other = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert other.pid == held.identity.pid
    if process_tree.identify(other.pid) != held.identity:
        break
    other.kill()
    other.communicate()
kept.scan()
assert kept.members(held.identity, tag) == process_tree.members(held.identity, tag) == []
process.interrupt(held.identity)
process.terminate(held.identity, tag)
process.kill(held.identity, tag)
process._signal_all([held.identity], 9)
try:
    other.stdin.write(b"hello\\n")
    print("alive" if other.stdout.readline() else "dead")
except BrokenPipeError:
    print("dead")
other.kill()
other.wait()
"""


def test_a_process_with_a_reused_pid_is_never_signalled(tmp_path):
    """In a namespace of its own, where the next pid can be chosen: as if all pids had been given once around."""
    root = str(Path(__file__).parents[4])
    space = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    command = [*space, sys.executable, "-c", GIVEN_AGAIN, str(tmp_path), root, TAG]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode == 77 or (ran.returncode and "unshare:" in ran.stderr):
        pytest.skip("no namespaces of pids on this machine")
    assert ran.stdout.strip() == "alive", ran.stderr


# A process without tag, in a session of its own, whose parent ends: it falls to the program that began it all.
ORPHAN = """
import ctypes, os, subprocess, time
if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
    os._exit(77)
subprocess.run(["sh", "-c", "setsid env -i sleep 600 & echo $! >orphan.new; mv orphan.new orphan; cat go"])
open("over", "w").close()
time.sleep(600)
"""


def test_a_scan_sees_a_process_that_changed_its_parent(started, tmp_path):
    os.mkfifo(tmp_path / "go")
    held = started(f"exec {shlex.quote(sys.executable)} -c {shlex.quote(ORPHAN)}")
    wait_until(lambda: (tmp_path / "orphan").exists() or held.child.poll() is not None)
    if held.child.poll() == 77:
        pytest.skip("orphans always fall to the first process here")
    orphan = int((tmp_path / "orphan").read_text())
    wait_until(lambda: os.getsid(orphan) == orphan and not process_tree._environment(orphan).count(b"="))
    kept = process_tree.ProcessTable()
    for _ in range(2):
        kept.scan()
        assert orphan in {member.pid for member in kept.members(held.identity, TAG)}
        if not (tmp_path / "over").exists():
            (tmp_path / "go").write_text("")
            wait_until((tmp_path / "over").exists)
    assert psutil.Process(orphan).ppid() == held.identity.pid


def test_one_scan_serves_every_launch_that_ended(make, tmp_path, monkeypatch):
    """A fleet has thousands of processes: they are read once a turn, and what each was started with once at all."""
    wakeup, looks, read, asked = Wakeup(), [], [], []
    look, stat, environment = process_tree.ProcessTable.scan, process_tree._stat, process_tree._environment
    monkeypatch.setattr(process_tree.ProcessTable, "scan", lambda self: looks.append(1) or look(self))
    monkeypatch.setattr(process_tree, "_stat", lambda pid: asked.append(pid) or stat(pid))
    monkeypatch.setattr(process_tree, "_environment", lambda pid: read.append(pid) or environment(pid))
    launches = Launches(LaunchTags("run", b"secret"), wakeup)
    tags = {who: launches.tag(who, 1) for who in ("agent-1", "agent-2", "agent-3", "agent-4")}
    held = {who: launches.hold(who, 1, make("exec sleep 600", tag=tag), 0.0) for who, tag in tags.items()}
    for child in held.values():
        child.release()
    for ending in (("agent-2", "agent-3"), ("agent-4",)):
        looks.clear()
        for who in ending:
            os.kill(held[who].identity.pid, signal.SIGKILL)
        wait_until(lambda gone=ending: not any(process_tree.is_alive(held[who].identity) for who in gone))
        launches.suspect_all()
        assert sorted((launch.who, state) for launch, state in launches.ended()) == [
            (who, LaunchState.GONE) for who in ending
        ]
        assert len(looks) == 1
    assert read.count(held["agent-1"].identity.pid) <= 1
    assert asked.count(os.getpid()) <= 1
    process.kill(held["agent-1"].identity, tags["agent-1"])
    held["agent-1"].child.wait(120)
    launches.close()
    wakeup.close()


@pytest.mark.parametrize("has_handles", [True, False])
def test_the_end_of_a_child_is_waited_for_or_given_up(started, monkeypatch, has_handles: bool) -> None:
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open")
    assert process.wait(started("exit 7").child, 120) == 7
    assert process.wait(started("kill -9 $$").child, 120) == -9
    held = started("exec sleep 60")
    assert process.wait(held.child, 0.01) is None
    process.kill(held.identity, TAG)
    assert process.wait(held.child, 120) == -9
