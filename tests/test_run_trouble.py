"""Real runs in trouble: deaf agents, graders that lie or die, lost notifications, a supervisor that is killed."""

import json
import shutil
import subprocess
import sys
import time

import pytest
from real_runs import TRY, Run, tries, wait_until

from attempts.record import Verdict
from coral.errors import CoralError
from coral.fleet.decide import decide
from coral.fleet.state import Fleet
from coral.journal import decisions, fold
from coral.launch import detach

pytestmark = pytest.mark.slow

COUNTING = [{"repeat": {"steps": [{"edit": {"file": "x.txt", "content": "{n}"}}, {"submit": "try {n}"}]}}]


DEAF = """
if [ "$CORAL_AGENT" = agent-1 ]; then
  trap '' INT TERM
  setsid sh -c "trap '' INT TERM; sleep 300" &
  echo 1 > x.txt; coral eval -m deaf
  while :; do sleep 1; done
fi
n=$(($(cat x.txt) + 1)); echo $n > x.txt
echo working
coral eval -m "value $n"
sleep 300
"""


def test_a_deaf_agent_is_gone_within_the_graces_and_delays_nobody(start):
    run = start(DEAF, overrides=("agents.count=2", "grader.slots=2", "run.interrupt_grace=2", "run.terminate_grace=2"))
    first = wait_until(lambda: [each for each in run.events("interrupted") if each["agent"] == "agent-1"], 30)[0]
    gone = wait_until(lambda: [each for each in run.events("exited") if each["agent"] == "agent-1"], 30)[0]
    assert gone["clock"] - first["clock"] < 2 + 2 + 3
    # Its next launch carried the heartbeat, and the grandchild is gone with the first one.
    assert "launch 2 (heartbeat): reflect" in [each["text"] for each in run.events("spawned")]
    published = [each for each in run.events("published") if each["agent"] == "agent-2"]
    signals = [each for each in run.events("interrupted") if each["agent"] == "agent-2"]
    assert len(signals) >= 5
    # Interrupted in the very turn in which its attempt was published, however deaf the other one is.
    waits = [signal["clock"] - attempt["clock"] for attempt, signal in zip(published, signals, strict=False)]
    assert max(waits) < 0.5
    run.stop()
    assert run.left() == []


def grader_that_says(value: str) -> str:
    return (
        "def grade(workspace, kind):\n"
        "    if kind == 'baseline':\n        return 0.0\n"
        f"    if (workspace / 'x.txt').read_text() == '1':\n        return {value}\n"
        "    return float((workspace / 'x.txt').read_text())\n"
    )


@pytest.mark.parametrize("value", ["float('nan')", "float('-inf')", "'3'", "10**400", "None"])
def test_what_is_no_score_fails_with_its_reason_and_is_never_best(start, value):
    script = [*TRY, {"edit": {"file": "x.txt", "content": "0.5"}}, {"submit": "a half"}, "hang"]
    run = start(script, grade=grader_that_says(value))
    first, second = run.wait_for_attempts(2)[:2]
    assert first.verdict in (Verdict.FAILED, Verdict.VOID)
    assert first.score is None
    assert first.reason
    assert second.score == 0.5
    assert run.fleet().run.progress.best == 0.5
    run.stop()


def test_a_command_that_writes_a_hostile_result_is_no_crash_either(start):
    command = 'if [ "$CORAL_KIND" = baseline ]; then echo 1 > "$CORAL_RESULT"; else echo NaN > "$CORAL_RESULT"; fi'
    run = start([*TRY, "hang"], command=command)
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.score is None
    assert attempt.reason
    run.stop()


def test_a_grader_that_dies_with_the_candidate_is_the_candidates_fault_only_if_the_seed_still_grades(start):
    dies = "import os\n\ndef grade(workspace):\n    text = (workspace / 'x.txt').read_text()\n"
    dies += "    if text == '1':\n        os._exit(3)\n    return float(text)\n"
    run = start([*TRY, "hang"], grade=dies)
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.verdict is Verdict.FAILED
    run.stop()


def test_three_voids_in_a_row_hold_the_queue_and_raise_an_alert(start):
    broken = "import pathlib\n\ndef grade(workspace, private, kind):\n"
    broken += "    if (private / 'broken').exists():\n        raise RuntimeError('the disk of the grader is full')\n"
    broken += "    (private / 'broken').touch()\n    return 0.0\n"
    run = start(COUNTING, grade=broken)
    attempts = run.wait_for_attempts(3)
    assert [each.verdict for each in attempts[:3]] == [Verdict.VOID] * 3
    wait_until(lambda: run.events("alert"), 10, "an alert")
    status = wait_until(lambda: (s := json.loads(run.layout.status.read_text()))["grading"]["paused"] and s, 10)
    assert status["alerts"]
    assert run.fleet().agents["agent-1"].progress.evals == 0
    run.stop()


def test_a_grade_says_how_far_it_is(start):
    slow = "import time\nfrom coral.grader import progress\n\ndef grade(workspace, kind):\n"
    slow += "    if kind != 'baseline':\n        progress(0.4, 'fold 3 of 7')\n        time.sleep(60)\n    return 0.0\n"
    run = start([*TRY, "hang"], grade=slow)
    told = wait_until(
        lambda: run.layout.status.exists() and json.loads(run.layout.status.read_text())["grading"]["beats"]
    )
    assert told == [{"number": 1, "progress": 0.4, "message": "fold 3 of 7"}]
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "coral", "status", "--run", str(run.layout.root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "grading #1 (40%, fold 3 of 7)" in shown.stdout
    run.stop()
    assert run.fleet().pending[1].step.value == "queued"


def test_a_grade_that_takes_too_long_is_killed_with_everything_it_started(start):
    hangs = "import subprocess, time\n\ndef grade(workspace, kind):\n    if kind != 'baseline':\n"
    hangs += "        subprocess.Popen(['setsid', 'sleep', '300'])\n        time.sleep(300)\n    return 0.0\n"
    run = start([*TRY, "hang"], grade=hangs, overrides=("grader.timeout=1",))
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.verdict is Verdict.FAILED
    assert "1 second" in attempt.reason
    run.stop()
    assert run.left() == []


@pytest.mark.parametrize("watch", ["false", "true"])
def test_attempts_are_noticed_with_and_without_notifications(start, watch):
    run = start([*tries(1, 2), "hang"], overrides=(f"run.watch={watch}", "run.poll_seconds=0.3"))
    run.wait_for_attempts(2)
    wait_until(lambda: len(run.received("agent-1", "reflect")) == 2, 20, "both reflections")
    run.stop()


def test_with_notifications_an_attempt_does_not_wait_for_the_poll(start):
    run = start([*TRY, "hang"], overrides=("run.poll_seconds=600",))
    run.wait_for_attempts(1, 20)
    run.stop(20)


def test_heartbeats_interrupt_under_nohup(start):
    run = start([*tries(1, 2), "hang"], supervise=False)
    run.supervise(prefix=["/bin/sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh"])
    wait_until(lambda: len(run.prompts("agent-1")) == 3, 30, "two heartbeats")
    assert [each["text"].split(": ")[1] for each in run.events("exited")] == ["interrupted"] * 2
    run.stop()


def test_killed_in_the_middle_a_run_goes_on_with_nothing_lost_or_doubled(start):
    run = start(COUNTING, overrides=("agents.count=3", "grader.slots=2", "budget.attempts=30"))
    run.wait_for_attempts(8)
    run.kill()
    before = run.fleet()
    sessions = {name: each.session for name, each in before.agents.items()}
    run.supervise()
    run.wait_for_end(90)
    fleet = run.fleet()
    attempts = run.attempts()
    assert len(attempts) == 30 == fleet.run.progress.graded
    assert sorted(each.order for each in attempts) == list(range(1, 31))
    assert len({each.submission for each in attempts}) == 30
    assert len({each.commit for each in attempts}) == 30
    assert {name: each.session for name, each in fleet.agents.items() if sessions[name]} == {
        name: session for name, session in sessions.items() if session
    }
    for name, agent in fleet.agents.items():
        mine = [each for each in attempts if each.agent == name]
        assert agent.progress.evals == len(mine)
        assert agent.progress.best == max(each.score for each in mine if each.score is not None)
        handed = run.received(name, "reflect")
        owed = {each.id for each in agent.owed if each.name == "reflect"}
        assert len(set(handed) | owed) == len(mine)
        assert {prompt["session"] for prompt in run.prompts(name)} == {agent.session}
    assert run.left() == []


def test_the_journal_decides_the_same_again(start):
    run = start(COUNTING, overrides=("agents.count=2", "budget.attempts=6"))
    run.wait_for_attempts(3)
    run.kill()
    run.supervise()
    run.wait_for_end(60)
    fleet = Fleet()
    for rules, decision in decisions(run.layout.journal):
        fleet, actions = decide(fleet, decision.events, decision.now, rules)
        assert actions == decision.actions
    assert fleet == run.fleet()


def test_survivors_are_taken_over_and_not_started_again(start):
    run = start(["hang"])
    wait_until(lambda: run.layout.journal.exists() and any(each.heard for each in run.fleet().agents.values()), 20)
    run.kill()
    living = run.left()
    assert living
    run.supervise()
    wait_until(
        lambda: len([each for each in run.layout.journal.read_text().splitlines() if '"rules"' in each]) == 2, 20
    )
    run.stop()
    assert len(run.prompts("agent-1")) == 1
    assert run.left() == []


def test_a_copied_run_takes_over_nothing_and_still_goes_on(start, tmp_path):
    run = start([*TRY, "hang", "hang"])
    run.wait_for_attempts(1)
    wait_until(lambda: len(run.prompts("agent-1")) == 2, 20)
    run.kill()
    living = run.left()
    copy = Run.__new__(Run)
    copy.layout = type(run.layout)(tmp_path / "copy" / run.layout.root.name)
    shutil.copytree(run.layout.root, copy.layout.root, symlinks=True)
    copy.supervise()
    wait_until(lambda: len(copy.prompts("agent-1")) == 3, 30, "the copy's own launch")
    copy.stop()
    assert set(living) <= set(run.left())
    run.supervise()
    run.stop()
    assert run.left() == []


def test_stop_leaves_nothing_and_resume_goes_on_where_it_was(start):
    run = start(COUNTING, overrides=("agents.count=2",))
    run.wait_for_attempts(4)
    run.stop()
    assert run.left() == []
    before = run.fleet()
    assert before.run.finished
    assert all(each.phase.value == "waiting" for each in before.agents.values())
    count = len(run.attempts())
    run.supervise()
    run.wait_for_attempts(count + 3)
    run.stop()
    after = run.fleet()
    for name, agent in after.agents.items():
        assert agent.session == before.agents[name].session
        assert agent.launch > before.agents[name].launch
    assert run.left() == []


def test_a_run_whose_supervisor_was_killed_can_still_be_stopped(start):
    run = start(["hang"])
    wait_until(lambda: run.prompts("agent-1"), 20)
    run.kill()
    assert run.left()
    stopped = subprocess.run(
        [sys.executable, "-P", "-m", "coral", "stop", "--run", str(run.layout.root)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert stopped.returncode == 0, stopped.stderr
    assert run.left() == []
    assert len(run.prompts("agent-1")) == 1
    assert run.fleet().run.finished


def test_the_result_is_printed_even_where_the_heartbeat_interrupts(start):
    run = start([*TRY, "hang"])
    wait_until(lambda: len(run.prompts("agent-1")) == 2, 20)
    assert "#1: 1, improved" in run.layout.output("agent-1", 1).read_text()
    run.stop()


def test_a_second_supervisor_is_refused_by_name(start):
    run = start(["hang"])
    wait_until(lambda: run.layout.journal.exists() and run.prompts("agent-1"), 20)
    second = Run.__new__(Run)
    second.layout = run.layout
    second.supervise()
    assert second.supervisor is not None
    assert second.supervisor.wait(20) != 0
    assert str(run.supervisor.pid) in run.layout.log.read_text()
    run.stop()


def test_what_an_agent_removes_from_its_clone_is_there_again_at_its_next_launch(start):
    again = "if [ -e again ]; then ls .shared/notes && cat AGENTS.md; sleep 60; fi; touch again; "
    run = start(again + "rm -rf .shared AGENTS.md; echo 1 > x.txt; coral eval -m one; sleep 60\n")
    wait_until(lambda: run.layout.output("agent-1", 2).exists(), 20)
    wait_until(lambda: "coral eval" in run.layout.output("agent-1", 2).read_text(), 20, "the instructions")
    run.stop()


def test_a_runtime_that_breaks_is_set_aside_and_the_loop_goes_on(start, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "breaking.py").write_text(
        "from coral.runtimes.scripted import Scripted\n\n\nclass Breaking(Scripted):\n"
        "    def read(self, line):\n        raise KeyError('a line it did not expect')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    run = start([*TRY, "hang"], overrides=("agents.runtime=breaking:Breaking", "run.start_grace=0.5"))
    alerts = wait_until(lambda: run.events("alert"), 20, "an alert")
    assert "a line it did not expect" in alerts[0]["text"]
    run.wait_for_attempts(1, 20)
    wait_until(lambda: len(run.prompts("agent-1")) >= 2, 20, "the heartbeat all the same")
    run.stop()
    assert run.left() == []


def test_a_supervisor_in_the_background_that_cannot_start_says_why(start):
    run = start(["hang"], supervise=False)
    run.layout.journal.write_text("this is no journal\n{}\n")
    with pytest.raises(CoralError, match="line 1 is damaged"):
        detach(run.layout)


def test_what_is_no_submission_or_request_is_set_aside(start):
    run = start(["hang"], overrides=("run.poll_seconds=0.2",))
    wait_until(lambda: run.prompts("agent-1"), 20)
    inbox = run.layout.attempts / "inbox" / "agent-1"
    requests = run.layout.requests_of("agent-1")
    hostile = [b"", b"{", b"\xff\xfe", b"[1]", b'{"id": 3}', b"[" * 5000, b"x" * 200_000]
    for place, content in enumerate(hostile):
        (inbox / f"{place:020d}.json").write_bytes(content)
        (requests / f"hostile-{place}.json").write_bytes(content)
    (inbox / "link.json").symlink_to("/etc/passwd")
    wait_until(lambda: len(run.events("alert")) >= 2 * len(hostile), 20, "the alerts")
    assert not list(requests.glob("*.json"))
    assert run.supervisor is not None
    assert run.supervisor.poll() is None
    run.stop()
    assert fold(run.layout.journal).fleet.run.next_number == 1


def test_time_goes_on_from_where_the_clock_stood(start):
    run = start(["hang"], overrides=("budget.hours=1",))
    wait_until(lambda: run.prompts("agent-1"), 20)
    run.stop()
    stood = fold(run.layout.journal).clock
    time.sleep(0.5)
    run.supervise()
    wait_until(lambda: len(run.prompts("agent-1")) == 2, 20)
    assert fold(run.layout.journal).clock < stood + 0.5 + 5
    run.stop()
