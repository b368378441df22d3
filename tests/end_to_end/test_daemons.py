"""What a candidate leaves behind as it is graded: it ends with the grade, and the grade is the candidate's own."""

import os
import signal
from pathlib import Path

import pytest
from levels import params
from real_runs import is_alive, wait_until

from coral.processes import cgroup
from workspace.seal import Level

# Leaves its session, its mark and its environment behind, and its parent, and becomes another program.
DAEMON = """
import os, resource, sys
if os.fork() == 0:
    os.setsid()
    resource.prlimit(0, 10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if os.fork() == 0:
        with open({pids!r}, "a") as file:
            print(os.getpid(), file=file)
        os.execve("/bin/sleep", ["sleep", "300"], {{}})
    os._exit(0)
os.wait()
"""
FUNCTION = """
def grade(workspace):
    exec((workspace / "x.txt").read_text())
    return 1.0
"""


def submits(pids: Path, times: int) -> list[object]:
    code = DAEMON.format(pids=str(pids))
    tried = [
        ({"edit": {"file": "x.txt", "content": f"{code}# {number}"}}, {"submit": f"{number}"})
        for number in range(times)
    ]
    return [step for pair in tried for step in pair]


@pytest.mark.parametrize("is_function", [True, False])
def test_a_daemon_that_sheds_every_mark_ends_with_its_grade_which_is_not_void(
    start, tmp_path: Path, is_function: bool
) -> None:
    pids = tmp_path / "pids"
    command = "" if is_function else "python3 x.txt; echo 1 > $CORAL_RESULT"
    run = start(submits(pids, 3), grade=FUNCTION, command=command)
    attempts = run.wait_for_attempts(3)
    daemons = [int(pid) for pid in pids.read_text().split()]
    try:
        assert all(attempt.verdict not in ("void", "failed") for attempt in attempts)
        if cgroup.own_group() is not None:
            wait_until(lambda: not any(map(is_alive, daemons)), what="their end")
        assert not run.events("alert")
    finally:
        for pid in daemons:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


BOMB = """
import os, time
for _ in range(400):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""
FLOOD = """
import os
while True:
    os.write(1, bytes(1 << 20))
"""
FILLS = "import os, time; held = os.urandom(1 << 20) * 600; time.sleep(600)"


@pytest.mark.parametrize("level", params(*Level))
def test_what_uses_up_the_machine_has_failed_and_its_slot_is_free_for_the_next(start, level: Level) -> None:
    """Each without end but for its limit: the timeout is five minutes."""
    candidates = (BOMB, FLOOD, FILLS, "pass")
    steps = [({"edit": {"file": "x.txt", "content": code}}, {"submit": "a candidate"}) for code in candidates]
    overrides = (f"workspace.seal={level}", "grader.threads=100", "grader.memory=0.3", "grader.disk=0.1")
    run = start([step for pair in steps for step in pair], grade=FUNCTION, overrides=overrides)
    attempts = run.wait_for_attempts(4)
    assert [(attempt.verdict, attempt.reason) for attempt in attempts[:3]] == [
        ("failed", "its grade started more than 100 processes and threads (grader.threads)"),
        ("failed", "its grade wrote more than 0.1 GB (grader.disk)"),
        ("failed", "its grade used more than 0.3 GB of memory (grader.memory)"),
    ]
    assert attempts[3].score == 1.0
    assert all(attempt.seconds < 60 for attempt in attempts)
    assert not run.events("alert")
