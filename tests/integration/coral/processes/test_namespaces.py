"""Signals for a sealed program: it is in another session, below a process 1 that outlives them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.processes import namespaces, process, process_tree
from coral.processes.launch_tags import LaunchTags
from coral.processes.launches import Launches, LaunchState
from coral.processes.process import Program
from coral.processes.wakeup import Wakeup
from workspace import seal
from workspace.seal import Access

pytestmark = pytest.mark.skipif(
    bool(seal.bubblewrap_problem()), reason=f"NOT RUN: bubblewrap: {seal.bubblewrap_problem()}"
)
SAVES = "import signal, sys, time\nheard = []\nsignal.signal({0}, lambda *_: heard.append(1))\nopen('ready', 'w')\n"
SAVES += "while not heard: time.sleep(0.01)\ntime.sleep(0.3)\nopen('heard', 'w').write(str(len(heard)))\nsys.exit(7)\n"


@pytest.fixture
def launched(tmp_path: Path):
    """A launch of a sealed program, and all launches."""
    wakeup = Wakeup()
    launches = Launches(
        LaunchTags(f"sealed-{os.getpid()}", b"secret"), wakeup
    )  # another worker has other control groups
    (tmp_path / "empty").touch()

    def begin(*argv: str, code: Path | None = None):
        program = Program(
            argv=seal.bubblewrap(argv, {tmp_path: Access.WRITE}, tmp_path),
            env=dict(os.environ),
            cwd=tmp_path,
            stdin=tmp_path / "empty",
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            tag=launches.tag("agent-1", 1),
            code=code,
            sealed=True,
        )
        launches.hold("agent-1", 1, program, 0.0).release()
        return launches, launches.find("agent-1", 1)

    yield begin
    if launch := launches.find("agent-1", 1):
        launches.kill(launch)
        launch.child.wait(60)
    launches.close()
    wakeup.close()


def gone(launches: Launches):
    """The launch once nothing of it is left. Leftovers are killed, as the supervisor does."""

    def look():
        launches.suspect_all()
        ended = list(launches.ended())
        for launch in [launch for launch, state in ended if state is LaunchState.LEFT_PROCESSES]:
            launches.kill(launch)
        return [launch for launch, state in ended if state is LaunchState.GONE]

    (launch,) = wait_until(look, what="the end of the launch")
    return launch


def saving(number: signal.Signals) -> tuple[str, ...]:
    return (shutil.which("python3"), "-c", SAVES.format(int(number)))


@pytest.mark.parametrize("keeps_code", [False, True])
def test_an_interrupt_reaches_the_program_once_and_its_exit_code_comes_out(launched, tmp_path, keeps_code) -> None:
    launches, launch = launched(*saving(signal.SIGINT), code=tmp_path / "code" if keeps_code else None)
    wait_until((tmp_path / "ready").exists, what="the program")
    process.interrupt(launch.identity)
    assert gone(launches).code == 7
    assert (tmp_path / "heard").read_text() == "1"
    assert not keeps_code or (tmp_path / "code").read_text() == "7\n"


def test_a_termination_lets_the_program_end_before_its_sandbox(launched, tmp_path) -> None:
    launches, launch = launched(*saving(signal.SIGTERM))
    wait_until((tmp_path / "ready").exists, what="the program")
    launches.terminate(launch)
    assert gone(launches).code == 7
    assert (tmp_path / "heard").read_text() == "1"


def test_a_program_that_a_signal_ended_is_reported_as_such(launched) -> None:
    launches, launch = launched("sleep", "600")
    wait_until(lambda: namespaces.ready_init(launch.identity.pid), what="the sandbox")
    process.interrupt(launch.identity)
    assert gone(launches).code == -signal.SIGINT


def test_an_interrupt_at_any_moment_of_the_start_ends_the_launch(launched) -> None:
    for step in range(60):
        launches, launch = launched("sleep", "600")
        time.sleep(step / 2000)  # intentional-sleep: the moment is what is tried
        process.interrupt(launch.identity)
        assert gone(launches).code == -signal.SIGINT


def test_a_kill_ends_all_that_is_in_the_sandbox(launched, tmp_path) -> None:
    script = "trap '' INT TERM; setsid env -i /bin/sh -c 'echo $$ >daemon; exec sleep 600' & exec sleep 600"
    launches, launch = launched("/bin/sh", "-c", script)
    wait_until(lambda: (tmp_path / "daemon").exists() and (tmp_path / "daemon").read_text(), what="the daemon")
    init = namespaces.ready_init(launch.identity.pid)
    launches.kill(launch)
    gone(launches)
    assert process_tree.identify(init) is None


def test_only_what_is_sealed_has_a_process_1_of_its_own() -> None:
    assert namespaces.ready_init(os.getpid()) is None
    assert not namespaces.is_inside(os.getpid())
    assert [namespaces.code_of_program(code) for code in (0, 7, 128, 130, 137, 255, -9)] == [0, 7, 128, -2, -9, 255, -9]


def test_a_process_may_have_any_name() -> None:
    """The kernel shows it as it is, but for ends of lines."""
    name = b"\xff\x0b\rUid: 9"
    code = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        found = namespaces._status(child.pid)
        child.stdin.write(b"\n")
    assert found["Name"] == name.decode("latin-1")
    assert found["Uid"].split()[0] == str(os.getuid())
