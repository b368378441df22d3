"""A grade that uses up the machine is ended, and its candidate has failed, at each level that this machine has."""

import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from files import write_files
from levels import open_to_others, params

from coral.config.load import load
from coral.fleet.events import Outcome
from coral.grading import limits
from coral.grading.limits import GradeCheck, GradeLimits, pause_after
from coral.grading.once import grade_once
from coral.processes.process_tree import identify
from workspace.seal import Level

LEVELS = params(*Level)
GRADER = """
def grade(workspace):
    exec((workspace / "candidate.py").read_text(), {})
    return 999.0
"""
CLOSED = "its grade wrote into folders that lie too deep or are closed again and again (grader.disk)"
NOBODY = 65534
ENDLESS = "\nimport time\nwhile True: time.sleep(1)\n"
FORKS = "import os, time\nfor _ in range(300):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"
THREADS = "import threading, time\nfor _ in range(100): threading.Thread(target=time.sleep, args=(600,)).start()\n"
MEMORY = "import os, time\nheld = [bytearray(os.urandom(1 << 20)) * 10 for _ in range(40)]\n"
SHARED = f"{MEMORY}for _ in range(3):\n    if os.fork() == 0: time.sleep(600)\ntime.sleep(2)\nos._exit(7)\n"
DISK = "import tempfile\nfile = tempfile.TemporaryFile(dir='{}')\nfile.write(b'x' * 40_000_000)\nfile.flush()\n"
IN_MEMORY = "for folder in ('/dev/shm', '/tmp', '/var/tmp'): open(folder + '/x', 'wb').write(bytes(150_000_000))\n"
MAPPED = """
import mmap, os, time
with open("/dev/shm/x", "wb") as file: file.write(bytes(200_000_000))
held = mmap.mmap(os.open("/dev/shm/x", os.O_RDWR), 0)
sum(held[at] for at in range(0, len(held), 4096))
time.sleep(2)
os._exit(7)
"""
FILES = "import os\nfor i in range(300): open(os.environ['TMPDIR'] + f'/{i}', 'wb').write(b'x' * 200_000)\n"
OUTPUT = "import os\nfor _ in range(400): os.write(1, b'x' * 100_000)\n"


def task(folder: Path, candidate: str, level: Level) -> Path:
    sections = f"task: {{name: t, description: d}}\nworkspace: {{seal: {level}}}\n"
    grader = "grader: {entry: grade.py:grade, timeout: 60, threads: 50, memory: 0.3, disk: 0.03}\n"
    files = {"task.yaml": sections + grader, "grade.py": GRADER, "seed/candidate.py": candidate}
    write_files(folder / "task", files).chmod(0o700)
    return folder / "task"


def disk_check(folder: Path, disk: int | None) -> GradeCheck:
    identity = identify(os.getpid())
    assert identity is not None
    return GradeCheck(GradeLimits(threads=10_000, memory=None, disk=disk), identity, "", folder)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (FORKS, "its grade started more than 50 processes and threads (grader.threads)"),
        (THREADS, "its grade started more than 50 processes and threads (grader.threads)"),
        (MEMORY, "its grade used more than 0.3 GB of memory (grader.memory)"),
        (FILES, "its grade wrote more than 0.03 GB (grader.disk)"),
        (OUTPUT, "its grade wrote more than 0.03 GB (grader.disk)"),
    ],
    ids=["processes", "threads", "memory", "files", "output"],
)
def test_a_grade_over_a_limit_is_ended_and_its_candidate_has_failed(
    tmp_path: Path, candidate: str, reason: str, level: Level
) -> None:
    config = load(task(tmp_path, candidate + ENDLESS, level))
    began = time.monotonic()
    result = grade_once(config, tmp_path / "work")
    assert (result.outcome, result.reason, result.score) == (Outcome.FAILED, reason, None)
    assert time.monotonic() - began < 50  # it did not wait for the timeout


@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP))
def test_files_in_the_memory_of_a_sandbox_count_as_memory(tmp_path: Path, level: Level) -> None:
    """No single folder takes more than the limit; together they would."""
    result = grade_once(load(task(tmp_path, IN_MEMORY + ENDLESS, level)), tmp_path / "work")
    reason = "its grade used more than 0.3 GB of memory (grader.memory)"
    assert (result.outcome, result.reason) == (Outcome.FAILED, reason)


MOUNTS = """
import ctypes, os
folder = "/tmp/" + "".join(chr(code) for code in (*range(1, 33), 0x85, 0x2028))
os.makedirs(folder)
if not ctypes.CDLL(None).unshare(0x10020000):  # as the first user in namespaces of its own
    ctypes.CDLL(None).mount(b"x", folder.encode(), b"tmpfs", 0, None)
"""


@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP))
def test_a_mount_of_any_name_hides_no_memory(tmp_path: Path, level: Level) -> None:
    result = grade_once(load(task(tmp_path, MOUNTS + IN_MEMORY + ENDLESS, level)), tmp_path / "work")
    assert (result.outcome, "(grader.memory)" in result.reason) == (Outcome.FAILED, True)


@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP))
def test_files_that_a_process_has_mapped_count_once(tmp_path: Path, level: Level) -> None:
    config = load(task(tmp_path, MAPPED, level))
    result = grade_once(config, tmp_path / "work")
    assert result.outcome is Outcome.CRASHED, result.reason  # by its own exit code


@pytest.mark.parametrize("level", params(Level.BUBBLEWRAP))
@pytest.mark.parametrize("place", ["/dev/shm", "/dev", "/tmp", "/run"])
def test_no_folder_in_memory_holds_more_than_the_limit(tmp_path: Path, level: Level, place: str) -> None:
    write = f"with open('{place}/x', 'wb') as file:\n    for _ in range(400): file.write(bytes(1_000_000))\n"
    config = load(task(tmp_path, write, level))
    result = grade_once(config, tmp_path / "work")
    # OSError, but it may be ended before.
    assert result.outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert result.score is None


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """The candidate is 400 MB, and forks three times."""
    tight = load(task(tmp_path / "a", SHARED, Level.NONE), ["grader.memory=1.0"])
    result = grade_once(tight, tmp_path / "work")
    assert result.outcome is Outcome.CRASHED, result.reason  # by its own exit code


def test_a_check_that_takes_long_is_repeated_less_often() -> None:
    assert pause_after(0.001) == 0.5
    assert pause_after(0.1) == 2.0


def test_a_check_that_takes_very_long_does_not_put_off_the_next_one() -> None:
    assert pause_after(1.0) == pause_after(1000.0) == 3.0


def test_more_files_than_can_be_counted_are_over_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_NAMES", 100)
    write_files(tmp_path, {str(number): "" for number in range(100)})
    assert disk_check(tmp_path, 3_000_000).exceeded() == ""
    write_files(tmp_path, {"one/more": ""})
    assert disk_check(tmp_path, 3_000_000).exceeded() == "its grade made more than 100 files (grader.disk)"
    assert disk_check(tmp_path, None).exceeded() == ""


def test_without_a_limit_a_grade_may_take_half_of_what_was_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the checkout has, and whatever others write to the same disk."""
    (tmp_path / "checkout").write_bytes(b"x" * 500_000)
    free = [3_000_000]
    monkeypatch.setattr(limits, "_free", lambda _: free[0])
    monkeypatch.setattr(limits, "LEAST_DISK", 100_000)
    check = disk_check(tmp_path, None)
    assert check.exceeded() == ""
    free[0] = 900_000  # somebody else took it
    assert check.exceeded() == ""
    (tmp_path / "more").write_bytes(b"x" * 1_700_000)
    assert check.exceeded() == "its grade wrote 0.0021 GB, half of what was free (grader.disk)"


def test_empty_files_count_too(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number % 5}/{number}": "" for number in range(1000)})
    assert disk_check(tmp_path, 600_000).exceeded() == ""
    assert disk_check(tmp_path, 250_000).exceeded() == "its grade wrote more than 0.00025 GB (grader.disk)"


def test_without_a_limit_a_grade_may_make_half_of_the_files_that_the_disk_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [300]
    monkeypatch.setattr(limits, "_free_names", lambda _: free[0])
    monkeypatch.setattr(limits, "LEAST_NAMES", 100)
    check = disk_check(tmp_path, None)
    free[0] = 100  # somebody else made them
    assert check.exceeded() == ""
    write_files(tmp_path, {f"a/{number}": "" for number in range(190)})
    assert check.exceeded() == "its grade made 200 files, half of what was free (grader.disk)"
    free[0] = 160  # not half of them
    assert check.exceeded() == ""


@pytest.mark.parametrize("names", [17, 16], ids=["folder", "file"])  # of 240 characters each
def test_what_lies_too_deep_to_be_counted_is_over_the_limit(tmp_path: Path, names: int) -> None:
    check = disk_check(tmp_path, 3_000_000)
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(names):
        os.mkdir("d" * 240, dir_fd=here)
        above, here = here, os.open("d" * 240, os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(os.open("f" * 240, os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    assert [check.exceeded() for _ in range(2)] == ["", CLOSED]


def exceeded_as_nobody(folder: Path, limit: int) -> str:
    """What the check says in a process that is not root's, nor the tests' user."""
    open_to_others(folder)
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            check = disk_check(folder, limit)
            os.write(write, "".join(check.exceeded() for _ in range(2)).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.wait()
    with open(read, "rb") as answer:
        return answer.read().decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_folder_that_a_grade_has_closed_is_counted(tmp_path: Path) -> None:
    write_files(tmp_path, {"closed/large": "x" * 4_000_000})
    for path in (tmp_path, tmp_path / "closed", tmp_path / "closed/large"):
        os.chown(path, NOBODY, NOBODY)
    (tmp_path / "closed").chmod(0o300)
    assert "wrote more than 0.003 GB" in exceeded_as_nobody(tmp_path, 3_000_000)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_folder_that_cannot_be_opened_is_over_the_limit(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    os.chown(tmp_path, NOBODY, NOBODY)
    assert exceeded_as_nobody(tmp_path, 3_000_000) == CLOSED


def test_what_a_grade_removes_during_the_check_does_not_hide_what_is_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a": "x", "b/large": "x" * 2_000_000, "c": "x" * 2_000_000})
    listed = os.scandir

    def remove_after_listing(folder: str) -> AbstractContextManager[list[os.DirEntry[str]]]:
        entries = sorted(listed(folder), key=lambda entry: entry.name)
        if folder == str(tmp_path):
            (tmp_path / "a").unlink()
        return nullcontext(entries)

    check = disk_check(tmp_path, 3_000_000)
    monkeypatch.setattr(os, "scandir", remove_after_listing)
    assert check.exceeded() == "its grade wrote more than 0.003 GB (grader.disk)"
