"""Candidates in a process of their own, at every level that this machine has: what they can reach, what they give."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from candidate_attacks import SPIED
from files import no_descriptor_left, write_files
from levels import params
from real_runs import wait_until
from trust import Outcome, Who, expected

from coral.grader import Array, Fail, candidate, run_candidate, sandbox
from workspace.plain_file import OWN_USERS
from workspace.seal import Level

SEALED = sandbox.SEALED
SHM = 0x4350_0000 | os.getpid() & 0xFFFF  # other tests have their own at the same time

HARMLESS = """
import numpy as np, sys

def solve(count, scale=1.0, table=None):
    print("said")
    print("complained", file=sys.stderr)
    return [index * scale for index in range(count)]

def arrays(given):
    return {"twice": given["x"] * 2, "number": np.float32(1.5), "mask": given["x"] > 1}

def value(text):
    return eval(text)
"""

# Tries everything that the findings name, and says what worked.
SPY = """
import ctypes, json, os, platform, resource, signal, socket, sys, tempfile

KEY = {"x86_64": 248, "aarch64": 217}[platform.machine()]

def fill():
    file, _ = tempfile.mkstemp()
    os.posix_fallocate(file, 0, 40_000_000)
    return file

def tries(secret, grader, supervisor, port, path, abstract, is_sealed, key):
    found, mine = {}, tempfile.mkdtemp()
    def attempt(name, act):
        try:
            found[name] = act()
        except BaseException as error:
            found[name] = ""
    attempt("hidden data", lambda: open(secret).read())
    attempt("its folder", lambda: os.listdir(os.path.dirname(secret)))
    attempt("environment", lambda: [name for name in os.environ if "KEY" in name])
    attempt("environment of the grader", lambda: open(f"/proc/{grader}/environ").read().count("PATH=") or "")
    attempt("environment of the supervisor", lambda: open(f"/proc/{supervisor}/environ").read().count("PATH=") or "")
    attempt("descriptors", lambda: os.listdir(f"/proc/{supervisor}/fd"))
    attempt("own descriptors", lambda: [fd for fd in range(3, 64) if is_open(fd)][1:])
    attempt("kill", lambda: os.kill(supervisor, 0) or "killed")
    attempt("loopback", lambda: socket.create_connection(("127.0.0.1", port), 2) and "connected")
    attempt("socket to the host", lambda: socket.socket(socket.AF_VSOCK) and "made")
    attempt("socket with a path", lambda: socket.socket(socket.AF_UNIX).connect(path) or "connected")
    attempt("abstract socket", lambda: socket.socket(socket.AF_UNIX).connect(abstract) or "connected")
    attempt("write into its tree", lambda: open("solution.py", "a").write("x"))
    attempt("write elsewhere", lambda: open(os.path.dirname(secret) + "/planted", "w").write("x"))
    attempt("size of a file", lambda: os.stat(path).st_mtime)
    attempt("mode of a file", lambda: os.chmod(secret, 0o600) or "changed")
    attempt("other processes", lambda: open(f"/proc/{supervisor}/cmdline").read())
    attempt("more disk", lambda: [fill() for _ in range(2)])
    attempt("limits of another process", lambda: resource.prlimit(supervisor, resource.RLIMIT_NOFILE))
    libc = ctypes.CDLL(None)
    attempt("keys of the kernel", lambda: libc.syscall(KEY, b"user", b"coral-test", b"x", 1, -3) > 0)
    attempt("shared memory", lambda: libc.shmget(key, 0, 0) >= 0)
    attempt("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "r+").name)
    attempt("device", lambda: os.mknod(mine + "/device", 0o20600, os.makedev(1, 3)) or "made")
    attempt("mount", lambda: not libc.mount(b"x", mine.encode(), b"tmpfs", 0, 0) and not libc.umount(mine.encode()))
    if is_sealed:  # without a sandbox, root would change the machine
        attempt("home", lambda: open(os.path.expanduser("~root/.planted-by-a-test"), "w").write("x"))
        attempt("write to the root", lambda: open("/planted", "w").write("x"))
        attempt("write to /dev", lambda: open("/dev/planted", "w").write("x"))
    return {name: what for name, what in found.items() if what}

def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
"""

DAEMON = """
import contextlib, os, resource, sys, time

def leaves(seconds):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        with contextlib.suppress(OSError):
            resource.prlimit(0, 10, (-1, -1))
        if os.fork() == 0:
            os.set_inheritable(writing, True)
            os.execv("/bin/sh", ["sh", "-c", f"echo >&{writing}; exec sleep {seconds}"])
        os._exit(0)
    os.wait()
    os.read(reading, 10)
    return "left"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_files(tmp_path / "checkout", {"solution.py": HARMLESS, "spy.py": SPY, "daemon.py": DAEMON})


@pytest.fixture(params=[params(Level.USER)[0] if level == "user" else level for level in sandbox.LEVELS])
def level(request: pytest.FixtureRequest, tree: Path) -> str:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap")
    if request.param == Level.USER:  # its marks say whether it works, and other users reach the tree in a moment
        return str(request.param)
    try:
        run_candidate(tree, "solution.py:solve", 1, seal=[request.param])
    except OSError:
        pytest.skip(f"{request.param} does not work here")
    return str(request.param)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[int, str, str]]:
    """A port, a socket with a path, and one with a name, that answer everybody."""
    by_path, abstract = str(tmp_path / "socket"), f"\0coral-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as one,
        socket.socket(socket.AF_UNIX) as two,
    ):
        one.bind(by_path)
        two.bind(abstract)
        one.listen()
        Path(by_path).chmod(0o777)
        two.listen()
        yield port.getsockname()[1], by_path, abstract


def test_a_function_gets_data_and_gives_data(tree: Path, level: str) -> None:
    answer = run_candidate(tree, "solution.py:solve", 3, kwargs={"scale": 0.5}, returns=list, seal=[level])
    assert (answer.value, answer.stdout, answer.stderr) == ([0.0, 0.5, 1.0], "said\n", "complained\n")
    assert (answer.sealed, answer.seconds > 0) == (level, True)
    given = {"x": np.arange(6, dtype="int16").reshape(2, 3)}
    asked = {"twice": Array((None, 3)), "number": float, "mask": Array((2, 3), "bool")}
    value = run_candidate(tree, "solution.py:arrays", given, returns=asked, seal=[level]).value
    assert (value["twice"].tolist(), value["twice"].dtype) == ([[0, 2, 4], [6, 8, 10]], np.float64)
    assert (value["number"], value["mask"].tolist()) == (1.5, [[False, False, True], [True, True, True]])


def test_a_program_gets_its_input_and_gives_what_it_prints(tree: Path, level: str) -> None:
    answer = run_candidate(tree, ["/bin/sh", "-c", "cat; echo no >&2; ls"], stdin=b"in\n", seal=[level])
    assert answer.value.splitlines() == [b"in", b"daemon.py", b"solution.py", b"spy.py"]
    assert answer.stderr == "no\n"
    with pytest.raises(Fail, match="/bin/sh ended with exit code 3: why"):
        run_candidate(tree, ["/bin/sh", "-c", "echo why >&2; exit 3"], seal=[level])


def test_what_a_candidate_can_reach(
    tree: Path, level: str, tmp_path: Path, listening: tuple[int, str, str], monkeypatch
) -> None:
    """In the words of docs/trust.md; what it tries besides is nowhere open."""
    monkeypatch.setenv("SECRET_KEY", "secret")
    secret = write_files(tmp_path / "private", {"hidden.json": "42"}) / "hidden.json"
    secret.parent.chmod(0o700)  # as that of a grader is
    memory = ctypes.CDLL(None).shmget(SHM, 4096, 0o1600)
    # Some process of this user in the supervisor's place: who started this one may be process 1, as the sandbox has.
    with subprocess.Popen(["sleep", "600"]) as supervisor:
        try:
            asked = (str(secret), os.getpid(), supervisor.pid, *listening, level in SEALED, SHM)
            found = run_candidate(tree, "spy.py:tries", *asked, seal=[level]).value
        finally:
            supervisor.kill()
            ctypes.CDLL(None).shmctl(memory, 0, None)
    planted = Path("~root/.planted-by-a-test").expanduser()
    if planted.exists():
        planted.unlink()
    opened = {name for name, row in SPIED.items() if expected(Who.BEHIND, row, level) is Outcome.OPEN}
    assert found.keys() == (opened if has_host_sockets() else opened - {"socket to the host"})
    assert ((tree / "solution.py").read_text() == HARMLESS) == (level in SEALED)


def has_host_sockets() -> bool:
    try:
        socket.socket(socket.AF_VSOCK).close()
    except (AttributeError, OSError):
        return False
    return True


@pytest.mark.parametrize(
    ("text", "returns", "wrong"),
    [
        ("float('nan')", float, "must give data: NaN is not a finite number"),
        ("[float('-inf')]", list, "must give data: -Infinity is not a finite number"),
        ("'x' * 5_000_000", str, "must give at most 4194304 bytes of JSON"),
        ("np.array([1], dtype='U9')", None, "must give data: an array cannot be read: its type is not one of numbers"),
        ("10**400", float, "must give a finite number"),
        ("True", float, "must give a float, not a bool"),
        ("True", int, "must give a int, not a bool"),
        ("'999'", float, "must give a float, not a str"),
        ("[1, 2]", Array((3,)), "must give an array of 3, not of 2"),
        ("np.array([1, np.inf])", Array((2,)), "must give an array of finite numbers"),
        ("np.zeros(3, dtype=complex)", Array((3,)), "must give an array of float64, not of complex128"),
        ("np.array([object()])", None, "ended with exit code 1: TypeError: an array of objects is no data"),
        ("{'y': 1}", {"x": float}, "must give a dict with x"),
        ("object()", None, "ended with exit code 1: TypeError: Object of type object is not JSON serializable"),
        ("1 / 0", float, "ended with exit code 1: ZeroDivisionError: division by zero"),
        ("sys.exit(7)", float, "ended with exit code 7"),
        ("__import__('os')._exit(0)", float, "must give data, and it gave none"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", float, "ended with signal SIGKILL"),
        ("len(bytearray(10**12))", int, "MemoryError"),
        ("[[]] * 10", lambda value: value[1:], ""),
    ],
)
def test_what_a_candidate_gives_is_judged(tree: Path, text: str, returns: Any, wrong: str) -> None:
    if not wrong:
        assert len(run_candidate(tree, "solution.py:value", text, returns=returns).value) == 9
        return
    with pytest.raises(Fail) as failed:
        run_candidate(tree, "solution.py:value", text, returns=returns)
    assert failed.value.reason.startswith("solution.py:value ")
    assert wrong in failed.value.reason


def test_rows_that_are_equal_have_equal_bytes(tree: Path) -> None:
    rows = "__import__('numpy').array([[1, 2], [1, 3]], 'u1').view('?')"
    with pytest.raises(Fail, match="its truth values are other bytes than 0 and 1"):
        run_candidate(tree, "solution.py:value", rows, returns=Array((2, 2), "bool"))


FORGED = """
import os, struct
def forge(data):
    for fd in range(3, 64):
        try:
            os.write(fd, bytes.fromhex(data))
        except OSError:
            pass
    os._exit(0)
"""


@pytest.mark.parametrize(
    "answer",
    [
        *(b'{"__array__": ["O", [1], 8]}\n12345678', b'{"__array__": ["<f8", [-1], 8]}\n12345678', b"[" * 100_000),
        *(b'{"__array__": ["<f8", ["a", 20000000], 8]}\n12345678', b'{"__array__": ["<f8", [true], 8]}\n12345678'),
        *(b'{"__array__": ["f8,(", [1], 8]}\n12345678', b'{"__array__": [{"itemsize": 1e20}, [1], 8]}\n12345678'),
        *(b'{"__array__": ["<f8", [1000000000000], 8]}\n', b'{"__array__": 7}\n', b"\xff\xfe\n", b"1e999\n", b""),
        *(b'{"__array__": ["no type", [1], 8]}\n12345678', b'{"__array__": ["<f8", [2], 16]}\n12345678'),
    ],
)
def test_whatever_is_written_in_the_place_of_an_answer_is_refused(tree: Path, answer: bytes) -> None:
    (tree / "forge.py").write_text(FORGED)
    with pytest.raises(Fail, match="must give"):
        run_candidate(tree, "forge.py:forge", answer.hex(), returns=float)


def test_time_and_output_have_limits(tree: Path, level: str, monkeypatch) -> None:
    began = time.monotonic()
    with pytest.raises(Fail, match=r"did not end within 0.5 seconds"):
        run_candidate(tree, ["/bin/sh", "-c", "trap '' TERM INT; while :; do :; done"], seconds=0.5, seal=[level])
    assert time.monotonic() - began < 30
    monkeypatch.setattr(candidate, "LARGEST", 100_000)
    flood = "import sys\nwhile True: sys.stdout.write('x' * 65536); sys.stderr.write('y' * 65536)"
    with pytest.raises(Fail) as failed:
        run_candidate(tree, ["python3", "-c", flood], seconds=1, seal=[level])
    assert len(failed.value.feedback) < 10_000
    with pytest.raises(Fail, match="answered with more than 100000 bytes"):
        run_candidate(tree, "solution.py:value", "'x' * 200_000", seal=[level])
    with pytest.raises(Fail, match="head answered with more than 100000 bytes"):
        run_candidate(tree, ["head", "-c", "100001", "/dev/zero"], seal=[level])
    assert run_candidate(tree, ["head", "-c", "100000", "/dev/zero"], seal=[level]).value == bytes(100_000)


def test_a_full_disk_is_the_candidates_own(tree: Path, level: str) -> None:
    text = "open(__import__('tempfile').mkstemp()[1], 'wb').write(bytes(10**8))"
    with pytest.raises(Fail, match=r"No space left|File too large|SIGXFSZ"):
        run_candidate(tree, "solution.py:value", text, seal=[level])


def test_what_a_candidate_leaves_where_everybody_may_write(tree: Path, level: str) -> None:
    left = Path("/var/tmp", f"coral-test-{os.getpid()}")
    try:
        with contextlib.suppress(Fail):
            run_candidate(tree, "solution.py:value", f"open({str(left)!r}, 'w').write('x')", seal=[level])
        assert left.exists() == (expected(Who.BEHIND, "leave a file", level) is Outcome.OPEN)
    finally:
        left.unlink(missing_ok=True)


def test_what_a_candidate_leaves_ends_with_it_or_with_the_grade(tree: Path, level: str) -> None:
    seconds = f"300.{time.time_ns()}"  # by which it is told from everybody else's

    def left() -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if is_sleeping(process, seconds)]

    assert run_candidate(tree, "daemon.py:leaves", seconds, seal=[level]).value == "left"
    if level in ("bubblewrap", "user"):
        wait_until(lambda: not left(), what="their end")
    else:
        wait_until(left, what="the daemon, which the grade's supervisor ends")
    for process in left():
        os.kill(process.pid, signal.SIGKILL)


def test_processes_without_end_end_with_its_time(tree: Path, level: str) -> None:
    seconds = f"301.{time.time_ns()}"
    line = f"while :; do sleep {seconds} & sleep 0.02; done"
    with pytest.raises(Fail, match="did not end within 1 seconds"):
        run_candidate(tree, ["/bin/sh", "-c", line], seconds=1, seal=[level])
    wait_until(lambda: not any(is_sleeping(each, seconds) for each in psutil.process_iter()), what="their end")


def is_sleeping(process: psutil.Process, seconds: str) -> bool:
    try:
        return seconds in process.cmdline()
    except psutil.Error:
        return False


def test_a_level_that_does_not_work_is_followed_by_the_next(tree: Path, monkeypatch) -> None:
    monkeypatch.setattr(candidate, "_worked", set())
    monkeypatch.setattr(sandbox, "bubblewrap", lambda *_: ["/nowhere/bwrap"])
    assert run_candidate(tree, "solution.py:solve", 1).sealed != "bubblewrap"
    with pytest.raises(OSError, match="no sandbox works here, of bubblewrap"):
        run_candidate(tree, "solution.py:solve", 1, seal=["bubblewrap"])


@pytest.mark.parametrize("program", ["solution.py", "/etc/x.py:f", "../x.py:f", ""])
def test_a_program_that_is_none_is_the_graders_mistake(tree: Path, program: str) -> None:
    with pytest.raises(ValueError, match=r"is not file.py:function of the workspace"):
        run_candidate(tree, program)


@pytest.mark.parametrize("seal", ["landlock", ["users"], ["bubblewrap", "strict"]])
def test_what_is_no_level_is_the_graders_mistake_and_nothing_runs(tree: Path, seal: object) -> None:
    """It would run without a sandbox, and be believed to have one."""
    with pytest.raises(ValueError, match="is not a list of levels, of bubblewrap, landlock, user, none"):
        run_candidate(tree, "solution.py:solve", 1, seal=seal)


@pytest.mark.slow
def test_no_descriptor_and_no_folder_is_left(tree: Path, level: str, tmp_path: Path, monkeypatch) -> None:
    run_candidate(tree, "solution.py:solve", 1, seal=[level])  # what starts candidates as a user stays
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    locked = "__import__('os').chmod(__import__('tempfile').mkdtemp(), 0)"
    with no_descriptor_left():
        for text in ("1", "1 / 0", locked, object()):
            with contextlib.suppress(Fail, TypeError):
                run_candidate(tree, "solution.py:value", text, seal=[level])
    assert set(tmp_path.iterdir()) == before


DEEP = """
import os

def dig():
    os.chdir(os.environ["TMPDIR"])
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    return 1
"""


@pytest.mark.slow
def test_folders_that_are_too_deep_are_nobodys_trouble(tree: Path, level: str, tmp_path: Path, monkeypatch) -> None:
    (tree / "deep.py").write_text(DEEP)
    (tmp_path / "scratch").mkdir()
    run_candidate(tree, "solution.py:solve", 1, seal=[level])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    assert run_candidate(tree, "deep.py:dig", returns=int, seal=[level]).value == 1
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("of_grader", "tried"),
    [
        ("", ("bubblewrap", "landlock", "user", "none")),
        ("none", ("bubblewrap", "landlock", "user", "none")),
        ("bubblewrap", ("landlock", "user")),
        ("landlock", ("landlock", "user")),
        ("user", ("bubblewrap", "landlock", "user")),
    ],
)
def test_a_sealed_grader_runs_no_candidate_without_a_sandbox(
    tree: Path, monkeypatch: pytest.MonkeyPatch, of_grader: str, tried: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CORAL_SEAL", of_grader)
    assert sandbox.levels() == tried
    monkeypatch.setattr(candidate, "_worked", set())
    monkeypatch.setattr(candidate, "start_sealed", nothing_works)
    monkeypatch.setattr(candidate, "_STARTS", {"user": nothing_works, "none": candidate.start_unsealed})
    if "none" in tried:
        assert run_candidate(tree, "solution.py:solve", 1).sealed == "none"
        return
    with pytest.raises(OSError, match=f"no sandbox works here, of {', '.join(tried)}"):
        run_candidate(tree, "solution.py:solve", 1)


def nothing_works(*_: object) -> None:
    raise OSError("it does not work here")


def test_the_users_of_candidates_are_of_those_that_coral_gives_out() -> None:
    assert sandbox.OWN_USERS == OWN_USERS


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert sandbox.system_calls("vax") == b""
    assert {len(sandbox.system_calls(machine)) % 8 for machine in ("x86_64", "aarch64")} == {0}
