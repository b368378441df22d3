"""The kernel's keys of the user are closed to sealed programs, however these are started; what they need is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from levels import params
from real_runs import wait_until

from coral.grader import sandbox
from coral.processes import process
from coral.processes.call_filter import filtered
from coral.processes.prestarted import SHELL, PrestartedInterpreter
from coral.processes.process import Program
from coral.processes.seal import UNSEALED, Sandbox, seal
from workspace.owner import User
from workspace.plain_file import OWN_USERS
from workspace.seal import Access, Level

# Tests at the same time have others.
ANN = User(OWN_USERS[1002 + 4 * os.getpid()], (), 0o077)
TAG = f"run-{os.getpid()}/ann/1"
KEYS = """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
done = [libc.syscall(add, b"user", b"coral-test", b"secret", 6, -2) >= 0, libc.syscall(control, 0, -4, 1) >= 0]
done.append(libc.shmget(0, 4096, 0o1600) >= 0)
print(done, flush=True)
"""
needs_filter = pytest.mark.skipif(not sandbox.calls_in_namespaces(), reason="no filter for this machine")


def sandbox_of(level: Level, folder: Path) -> Sandbox:
    return Sandbox(level, {folder: Access.WRITE}, network=True, user=ANN if level is Level.USER else None)


def program(folder: Path, code: Path | None = None) -> Program:
    argv = (sys.executable, "-I", "-S", "-B", "-c", KEYS)
    streams = Path(os.devnull), folder / "out", folder / "err"
    return Program(argv, dict(os.environ), folder, *streams, tag=TAG, code=code)


def keys_and_memory(folder: Path) -> str:
    """Whether a key could be added and a keyring joined; whether shared memory could be had."""
    return wait_until(lambda: (folder / "out").read_text().strip(), what="the program's words")


@needs_filter
@pytest.mark.parametrize("is_job", [False, True])
@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP, Level.LANDLOCK, Level.USER))
def test_the_keys_of_the_user_are_closed_to_a_launch_and_a_job(tmp_path: Path, level: Level, is_job: bool) -> None:
    tmp_path.chmod(0o777)
    child = process.start(seal(program(tmp_path, tmp_path / "code" if is_job else None), sandbox_of(level, tmp_path)))
    child.release()
    assert child.child.wait(60) == 0
    # Namespaces have shared memory of their own: programs that need it, such as databases, find it there.
    assert keys_and_memory(tmp_path) == f"[False, False, {level is Level.BUBBLEWRAP}]"


@needs_filter
@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP, Level.LANDLOCK))
def test_they_are_closed_to_a_prestarted_interpreter(tmp_path: Path, level: Level) -> None:
    started = PrestartedInterpreter(SHELL, dict(os.environ), TAG, sandbox=sandbox_of(level, tmp_path))
    child = started.hold(program(tmp_path))
    child.release()
    assert child.child.wait(60) == 0
    assert keys_and_memory(tmp_path).startswith("[False, False, ")


@needs_filter
def test_without_a_sandbox_nothing_is_refused(tmp_path: Path) -> None:
    """As docs/trust.md says. A kernel without keys, or a container that closes them, proves nothing of ours."""
    child = process.start(seal(program(tmp_path), UNSEALED))
    child.release()
    assert child.child.wait(60) == 0
    if not keys_and_memory(tmp_path).startswith("[True, True"):
        pytest.skip("NOT RUN: this machine closes the keys to everybody")


def test_a_program_inherits_no_descriptor_of_the_filter() -> None:
    with filtered(["bwrap"], b"8 bytes.") as (line, (given,)):
        assert line == ["bwrap", "--seccomp", str(given)]
        assert given >= 10  # the shell before it uses the lower ones
        assert os.read(given, 100) == b"8 bytes."
        kept = subprocess.run(["/bin/sh", "-c", f"test -e /proc/self/fd/{given}"], pass_fds=())
        assert kept.returncode == 1
    with filtered(["true"], b"") as unchanged:
        assert unchanged == (["true"], ())
