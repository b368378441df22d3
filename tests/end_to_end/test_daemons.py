"""What a candidate uses up as it is graded: its grade is ended, and the next one begins."""

import pytest
from levels import params
from real_runs import Run

from coral.fleet import events as on
from workspace.seal import Level

FUNCTION = """
def grade(workspace):
    exec((workspace / "x.txt").read_text())
    return 1.0
"""


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
FILES = """
import os
for number in range(10_000):
    open(f"{os.environ['TMPDIR']}/{number}", "wb").write(bytes(1 << 20))
"""
FILLS = "import os, time; held = os.urandom(1 << 20) * 600; time.sleep(600)"


def seconds_to_end(run: Run, number: int) -> float:
    """From the turn of the loop that finds a grade over its limit to the one that finds all of it gone, and gives
    its slot away: by the supervisor's clock, as the journal has it."""
    found = [
        decision.now.run_time
        for decision in run.decisions()
        for event in decision.events
        if isinstance(event, on.GradeOverLimit | on.Graded) and event.number == number
    ]
    assert len(found) >= 2
    return found[-1] - found[0]


@pytest.mark.parametrize("level", params(*Level))
def test_what_uses_up_the_machine_has_failed_and_its_slot_is_free_for_the_next(start, level: Level) -> None:
    """Each without end but for its limit: the timeout is five minutes."""
    candidates = (BOMB, FLOOD, FILES, FILLS, "pass")
    steps = [({"edit": {"file": "x.txt", "content": code}}, {"submit": "a candidate"}) for code in candidates]
    overrides = (
        f"workspace.seal={level}",
        "grader.slots=1",
        "grader.threads=100",
        "grader.memory=0.3",
        "grader.disk=0.1",
    )
    run = start([step for pair in steps for step in pair], grade=FUNCTION, overrides=overrides)
    attempts = run.wait_for_attempts(5)
    assert [(attempt.verdict, attempt.reason) for attempt in attempts[:4]] == [
        ("failed", "its grade started more than 100 processes and threads (grader.threads)"),
        ("failed", "its grade wrote more than 0.1 GB (grader.disk)"),
        ("failed", "its grade wrote more than 0.1 GB (grader.disk)"),
        ("failed", "its grade used more than 0.3 GB of memory (grader.memory)"),
    ]
    assert attempts[4].score == 1.0
    assert all(attempt.seconds < 60 for attempt in attempts)
    # A pause on purpose would be in each of them; a machine that stands still for a while is not in all.
    assert min(seconds_to_end(run, number) for number in range(1, 5)) < 5.0
    assert not run.events("alert")
