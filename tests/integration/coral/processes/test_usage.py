"""What processes use, and which of them the kernel ends first."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.processes import usage

HOLDS = """
import os, sys, time
held = os.urandom(1 << 20) * 100
children = [os.fork() == 0 for _ in range(2)]
os.write(1, b"ready\\n")  # in one piece, whatever buffers are set
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A process with 100 MB that has forked twice, as have its children: four in all, in a group of their own."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=pipe, stdout=pipe, start_new_session=True) as child:
        assert child.stdout is not None
        for _ in range(4):
            assert child.stdout.readline() == b"ready\n"
        yield child
        child.communicate()


def group_of(leader: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and in_group(path, leader)]


def in_group(path: Path, leader: int) -> bool:
    try:
        return os.getpgid(int(path.name)) == leader
    except ProcessLookupError:
        return False


def test_memory_that_is_shared_is_divided_if_it_would_be_too_much(family: subprocess.Popen[bytes]) -> None:
    pids = group_of(family.pid)
    assert len(pids) == 4
    counted = usage.usage_of(pids, exact_above=1 << 40)
    assert counted.threads == 4
    assert counted.memory > 400_000_000
    assert 100_000_000 < usage.usage_of(pids, exact_above=300_000_000).memory < 250_000_000


def test_processes_that_are_gone_use_nothing() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert usage.usage_of([child.pid], exact_above=0) == usage.ProcessUse(0, 0)


def test_the_machine_has_memory_and_no_more_than_its_control_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = usage.machine_memory()
    assert whole > 100_000_000
    (tmp_path / "memory.max").write_text("50000000\n")
    monkeypatch.setattr(usage, "own_group", lambda: tmp_path)
    assert usage.machine_memory() == 50_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert usage.machine_memory() == whole


def test_a_limit_of_any_control_group_around_ours_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = tmp_path / "outer" / "inner"
    ours.mkdir(parents=True)
    monkeypatch.setattr(usage, "own_group", lambda: ours)
    (ours / "memory.max").write_text("60000000\n")
    (ours / "memory.current").write_text("10000000\n")
    (ours.parent / "memory.max").write_text("50000000\n")
    (ours.parent / "memory.current").write_text("45000000\n")
    (ours.parent / "memory.stat").write_text("active_file 1000000\ninactive_file 2000000\n")
    assert usage.machine_memory() == 50_000_000
    assert usage.free_memory() == 8_000_000
    (ours.parent / "memory.max").write_text("max\n")
    assert usage.machine_memory() == 60_000_000
    assert usage.free_memory() == 50_000_000


def test_what_is_to_end_first_passes_that_on_to_what_it_starts() -> None:
    read = "read line; cat /proc/self/oom_score_adj"
    pipe = subprocess.PIPE
    with subprocess.Popen(["/bin/sh", "-c", read], stdin=pipe, stdout=pipe) as child:
        usage.end_first(child.pid, usage.GRADE)
        output, _ = child.communicate(b"go\n")
    assert output == b"800\n"
    wait_until(lambda: child.poll() is not None, what="its end")
    usage.end_first(child.pid, usage.GRADE)  # it is gone: nothing happens
