"""A program at each level that this machine has: what it reaches, how it ends, which levels work."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.errors import CoralError
from coral.processes import seal
from coral.processes.process import Program
from coral.processes.seal import Sandbox
from workspace.seal import Access, Level

BOTH = (Level.BUBBLEWRAP, Level.LANDLOCK)
SEALED = [
    pytest.param(level, marks=pytest.mark.skipif(bool(seal.problem(level)), reason=f"NOT RUN: {seal.problem(level)}"))
    for level in BOTH
]


def start(
    script: str, level: Level, view: dict[Path, Access], folder: Path, *, network: bool = True
) -> "subprocess.Popen[str]":
    program = Program(("/bin/sh", "-c", script), {}, folder, *[Path(os.devnull)] * 3, tag="")
    argv = seal.seal(program, Sandbox(level, view, network=network)).argv
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True)


def output(script: str, level: Level, view: dict[Path, Access], folder: Path, *, network: bool = True) -> str:
    with start(script, level, view, folder, network=network) as child:
        return child.communicate(timeout=60)[0]


@pytest.mark.parametrize("level", SEALED)
def test_each_access_is_what_it_says(tmp_path: Path, level: Level) -> None:
    view = {}
    for access in Access:
        folder = tmp_path / access
        folder.mkdir()
        (folder / "before").write_text("secret")
        (folder / "inner").mkdir()
        view[folder] = access
    view |= {tmp_path: Access.READ, tmp_path / "hidden" / "inner": Access.WRITE}
    script = "for name in *; do cat $name/before >/dev/null && echo $name read; done\n"
    script += "for name in read write hidden hidden/inner; do echo 1 >$name/new && echo $name write; done"
    found = output(f"({script}) 2>/dev/null", level, view, tmp_path).split("\n")[:-1]
    assert found == ["read read", "write read", "write write", "hidden/inner write"]


@pytest.mark.parametrize("level", SEALED)
def test_a_link_beside_what_is_hidden_does_not_show_it(tmp_path: Path, level: Level) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "file").write_text("secret")
    (tmp_path / "link").symlink_to("hidden")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "file").write_text("shown")
    found = output("cat link/file hidden/file beside/file", level, {tmp_path / "hidden": Access.HIDDEN}, tmp_path)
    assert found == "shown"


@pytest.mark.parametrize("level", SEALED)
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_if_it_is_given(tmp_path: Path, level: Level, network: bool) -> None:
    (tmp_path / "try.py").write_text(
        "import socket\nopened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "served = socket.create_server(('127.0.0.1', 0))\nopened.sendto(b'x', ('203.0.113.1', 9))\nprint('sent')\n"
    )
    found = output(f"{sys.executable} -S try.py", level, {}, tmp_path, network=network)
    assert found == ("sent\n" if network else "")


@pytest.mark.parametrize("level", SEALED)
def test_root_has_no_rights_of_root(tmp_path: Path, level: Level) -> None:
    for line in ("mount -t tmpfs none /mnt", "mknod dev b 8 0", "echo x >/proc/sys/kernel/core_pattern", "umount /tmp"):
        assert output(f"({line}) 2>/dev/null && echo done", level, {tmp_path: Access.WRITE}, tmp_path) == "", line


def test_by_landlock_a_program_is_the_process_that_was_started(tmp_path: Path) -> None:
    """With the signals as they are for every program: Python ignores some."""
    if problem := seal.problem(Level.LANDLOCK):
        pytest.skip(f"NOT RUN: {problem}")
    view = {tmp_path: Access.WRITE}
    script = "grep SigIgn /proc/self/status >status; echo $$ >new; mv new pid; exec sleep 600"
    child = start(script, Level.LANDLOCK, view, tmp_path)
    try:
        wait_until((tmp_path / "pid").exists, what="its start")
        assert int((tmp_path / "pid").read_text()) == child.pid
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == -signal.SIGINT
    ignored = int((tmp_path / "status").read_text().split()[-1], 16)
    assert not any(ignored >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ))


def test_by_landlock_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    program = Program(("/no/program",), {}, tmp_path, *[Path(os.devnull)] * 3, tag="")
    argv = seal.seal(program, Sandbox(Level.LANDLOCK, {}, network=True)).argv
    if not seal.problem(Level.LANDLOCK):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (127, "cannot start /no/program: No such file or directory\n")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the levels that work."""

    def have(*levels: Level) -> None:
        problems = {level: f"{level} is not installed" for level in Level if level not in (*levels, Level.NONE)}
        monkeypatch.setattr(seal, "problem", lambda level, _=None: problems.get(level, ""))

    return have


@pytest.mark.parametrize(
    ("asked", "level"),
    [("best", "bubblewrap"), ("require", "bubblewrap"), ("none", "none"), *((level, level) for level in BOTH)],
)
def test_the_level_is_the_strongest_unless_another_is_asked_for(
    machine: Callable[..., None], asked: str, level: str
) -> None:
    machine(*BOTH)
    assert seal.level_for(asked) == level
    assert seal.warning(asked) == ""


@pytest.mark.parametrize(
    ("works", "level", "words"),
    [
        ((), Level.NONE, "not sealed"),
        ((Level.LANDLOCK,), Level.LANDLOCK, "sealed by landlock alone"),
        ((Level.USER,), Level.USER, "sealed by users of their own alone"),
    ],
)
def test_best_takes_what_works_and_says_what_is_missing(
    machine: Callable[..., None], works: tuple[Level, ...], level: Level, words: str
) -> None:
    machine(*works)
    assert seal.level_for("best") is level
    # Root could do without both.
    more = ", and user is not installed" if not works and os.geteuid() == 0 else ""
    assert seal.warning("best").startswith(
        f"the agents are {words}, because bubblewrap is not installed{more}: docs/trust.md"
    )
    assert seal.warning("none") == ""


@pytest.mark.parametrize(("works", "asked"), [((), "require"), ((Level.LANDLOCK,), "bubblewrap")])
def test_what_is_required_and_does_not_work_is_refused(
    machine: Callable[..., None], works: tuple[Level, ...], asked: str
) -> None:
    machine(*works)
    with pytest.raises(CoralError, match="cannot seal the agents: bubblewrap is not installed"):
        seal.level_for(asked)


def test_a_program_that_is_not_sealed_is_as_it_was(tmp_path: Path) -> None:
    program = Program(("true",), {}, tmp_path, *[Path(os.devnull)] * 3, tag="")
    assert seal.seal(program, seal.UNSEALED) is program


@pytest.mark.parametrize("level", SEALED)
def test_all_that_lies_beside_what_is_hidden_can_be_read(tmp_path: Path, level: Level) -> None:
    for number in range(2000):
        (tmp_path / f"{number}.txt").touch()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "1999.txt").write_text("shown")
    assert output("cat 1999.txt", level, {tmp_path / "hidden": Access.HIDDEN}, tmp_path) == "shown"
