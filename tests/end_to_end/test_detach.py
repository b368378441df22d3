"""`coral stop --keep-agents` on real runs: the supervisor goes, all else goes on, and the next one takes it over."""

import json
import subprocess
import sys

import pytest
from real_runs import Run, coral_process, is_alive, wait_until

from coral.fleet.reasons import RunEnd, RunEndKind
from coral.supervisor.lock import hold_lock, holder

# Each does what it is told, by a file for each of its tries, and writes down who it is.
AGENT = """\
echo $$ >> "$CORAL_RUN/$CORAL_AGENT.pids"
echo ready
n=0
while :; do
  n=$((n + 1))
  until [ -e "$CORAL_RUN/$CORAL_AGENT.try-$n" ]; do
    [ -e "$CORAL_RUN/deaf" ] && trap '' INT TERM && : > "$CORAL_RUN/$CORAL_AGENT.deaf"
    sleep 0.02
  done
  echo "${CORAL_AGENT#agent-}.$n" > x.txt
  coral eval --no-wait -m "try $n" && : > "$CORAL_RUN/$CORAL_AGENT.tried-$n"
done
"""
GRADE = """\
folder=$(dirname "$0") && [ "$CORAL_KIND" = baseline ] || {
  echo $CORAL_ATTEMPT $$ >> "$folder/graded"
  until [ -e "$folder/pass-$CORAL_ATTEMPT" ]; do sleep 0.02; done
}
cat x.txt > "$CORAL_RESULT.part" && mv "$CORAL_RESULT.part" "$CORAL_RESULT"
"""
SETTINGS = ("agents.count=3", "grader.slots=2", "heartbeats=[{name: reflect, every: 5}]")
NAMES = ("agent-1", "agent-2", "agent-3")


@pytest.fixture
def run(start) -> Run:
    return start(AGENT, grade=GRADE, command="/bin/sh grade.py", overrides=SETTINGS)


def coral(run: Run, *words: str) -> "subprocess.CompletedProcess[str]":
    return coral_process(*words, "--run", str(run.layout.root))


def pids(run: Run) -> dict[str, list[int]]:
    """The process of each of its agents' lives."""
    found = {name: run.layout.root / f"{name}.pids" for name in NAMES}
    return {name: list(map(int, path.read_text().split())) if path.exists() else [] for name, path in found.items()}


def graded(run: Run) -> dict[int, list[int]]:
    """The processes that graded each attempt."""
    path, found = run.layout.grader / "graded", dict[int, list[int]]()
    for line in path.read_text().splitlines() if path.exists() else ():
        number, pid = map(int, line.split())
        found.setdefault(number, []).append(pid)
    return found


def try_it(run: Run, name: str, n: int) -> None:
    (run.layout.root / f"{name}.try-{n}").touch()
    wait_until((run.layout.root / f"{name}.tried-{n}").exists, what=f"try {n} of {name}")


def let_pass(run: Run, number: int) -> None:
    (run.layout.grader / f"pass-{number}").touch()


def at_work(run: Run) -> dict[str, list[int]]:
    wait_until(lambda: all(agent.has_output for agent in run.fleet().agents.values()) and all(pids(run).values()))
    return pids(run)


def test_agents_and_grades_go_on_and_are_taken_over(run: Run) -> None:
    alive = at_work(run)
    for name in NAMES[:2]:
        try_it(run, name, 1)
    wait_until(lambda: len(graded(run)) == 2, what="two grades at once")
    before = run.fleet()

    left = coral(run, "stop", "--keep-agents", "--reason", "an upgrade")
    assert (left.returncode, left.stderr) == (0, "")
    assert f"{run.layout.root.name} has no supervisor now" in left.stdout
    assert "coral resume" in left.stdout
    run.wait_for_end()
    status = " ".join(coral(run, "status").stdout.split())  # as it is folded says nothing
    assert "· left ·" in status
    assert "agents and grades continue; `" in status
    assert "coral resume" in status
    assert run.fleet().run.detached_reason == RunEnd(RunEndKind.REQUEST, detail="an upgrade")
    # Nothing was signalled: one of them tries again, and a grade comes to its end.
    try_it(run, "agent-3", 1)
    try_it(run, "agent-3", 2)
    let_pass(run, 1)
    wait_until(lambda: not is_alive(graded(run)[1][0]), what="the end of a grade")
    assert run.attempts() == []
    assert json.loads(coral(run, "stop", "--keep-agents", "--json").stdout)["left"] is True

    assert coral(run, "resume", "--detach").returncode == 0
    assert [(attempt.number, attempt.score) for attempt in run.wait_for_attempts(1)] == [(1, 1.1)]
    for number in (2, 3, 4):
        let_pass(run, number)
    attempts = run.wait_for_attempts(4)
    assert [
        (attempt.number, attempt.agent, attempt.score)
        for attempt in sorted(attempts, key=lambda attempt: attempt.number)
    ] == [(1, "agent-1", 1.1), (2, "agent-2", 2.1), (3, "agent-3", 3.1), (4, "agent-3", 3.2)]
    assert {number: len(grades) for number, grades in graded(run).items()} == {1: 1, 2: 1, 3: 1, 4: 1}
    after = run.fleet()
    assert pids(run) == alive
    assert run.events("interrupted") == []
    for name in NAMES:
        assert (after.agents[name].launch, after.agents[name].session) == (1, before.agents[name].session)
    assert after.run.detached_reason is None
    assert coral(run, "stop").returncode == 0
    assert run.left() == []
    assert pids(run) == alive


def test_a_run_that_was_left_is_really_stopped(run: Run) -> None:
    at_work(run)
    try_it(run, "agent-1", 1)
    wait_until(lambda: graded(run), what="a grade")
    assert json.loads(coral(run, "stop", "--keep-agents", "--json").stdout)["stopped"] is False
    run.wait_for_end()
    assert run.left() != []
    stopped = coral(run, "stop")
    assert (stopped.returncode, "has stopped" in stopped.stdout) == (0, True)
    assert run.left() == []
    assert run.fleet().run.finished == RunEnd(RunEndKind.REQUEST)
    assert coral(run, "stop", "--keep-agents").stdout.endswith("is not running\n")


def test_a_supervisor_that_dies_while_it_stops_is_replaced_by_who_asked(run: Run) -> None:
    at_work(run)
    (run.layout.root / "deaf").touch()
    wait_until(lambda: all((run.layout.root / f"{name}.deaf").exists() for name in NAMES))
    stopping = subprocess.Popen(
        [sys.executable, "-P", "-m", "coral", "stop", "--run", str(run.layout.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: run.fleet().run.stopping, what="the stop")
    run.kill()
    said, heard = stopping.communicate(timeout=180)
    assert (stopping.returncode, "has stopped" in said) == (0, True)
    assert run.left() == []
    assert run.fleet().run.finished
    assert heard.count("its supervisor is gone") <= 1


def test_a_stop_that_nobody_read_does_not_meet_the_next_supervisor(run: Run) -> None:
    at_work(run)
    run.kill()
    for type in ("stop", "leave"):
        run.request({"type": type, "reason": "of another day"})
    assert coral(run, "resume", "--detach", "-i", "go on").returncode == 0
    wait_until(lambda: any(agent.pending_messages for agent in run.fleet().agents.values()), what="the message")
    assert holder(run.layout.lock) is not None
    assert (run.fleet().run.stopping, run.fleet().run.detached_reason) == (None, None)


def test_who_asks_for_leave_of_a_supervisor_that_cannot_be_reached_is_told(run: Run) -> None:
    at_work(run)
    run.kill()
    with hold_lock(run.layout.lock):
        late = coral(run, "stop", "--keep-agents", "--timeout", "0.05")
    assert (late.returncode, "has not stopped within" in late.stderr) == (2, True)
    # It was killed before it read that: what it left goes on, and the request is taken back.
    assert coral(run, "stop", "--keep-agents").returncode == 0
    assert list(run.layout.requests_of("operator").glob("*.json")) == []
    assert len(run.left()) >= len(NAMES)
