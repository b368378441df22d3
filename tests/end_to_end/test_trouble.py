"""Real runs in trouble: deaf agents, graders that lie or die, lost notifications, a supervisor that is killed."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from real_runs import READ_NUMBER, TRY, Run, coral_process, is_alive, tries, wait_until

from attempts.record import Verdict
from coral.errors import CoralError
from coral.fleet.actions import Action, Interrupt, Publish
from coral.fleet.events import Event, Exited
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.journal import fold
from coral.runs.detach import detach
from coral.supervisor.event_queue import AT_FIRST

PAUSE = 2.0  # seconds that a run stands still

COUNTING = [{"repeat": {"steps": [{"edit": {"file": "x.txt", "content": "{n}"}}, {"submit": "try {n}"}]}}]


DEAF = """
if [ "$CORAL_AGENT" = agent-1 ]; then
  trap '' INT TERM
  setsid sh -c "trap '' INT TERM; sleep 300" &
  echo $! > "$CORAL_RUN/workspace/shared/child-$$"
  echo 1 > x.txt; coral eval -m deaf
  while :; do sleep 1; done
fi
n=$(($(cat x.txt) + 1)); echo $n > x.txt
echo working
coral eval -m "value $n"
sleep 300
"""


def test_a_deaf_agent_is_gone_within_the_graces_and_delays_nobody(start):
    run = start(DEAF, overrides=("agents.count=2", "grader.slots=2", "run.interrupt_grace=8", "run.terminate_grace=2"))
    wait_until(lambda: [event for event in run.events("exited") if event["agent"] == "agent-1"], what="its end")
    (end, *_) = [event for event in run.events("exited") if event["agent"] == "agent-1"]
    assert end["ending"] == "interrupted"  # what we had to kill did not crash
    # The grandchild is gone with the launch. A later launch may have written down a grandchild of its own.
    (first, *_) = sorted(run.layout.shared.glob("child-*"), key=lambda path: path.stat().st_mtime_ns)
    assert not is_alive(int(first.read_text()))
    wait_until(lambda: "launch 2 (heartbeat): reflect" in spawns_of(run, "agent-1"), what="its next launch")
    run.stop()
    assert run.left() == []
    interrupts = interrupts_at(run, "agent-1", 1)
    (gone,) = [at for at, decision in enumerate(run.decisions()) if _ends(decision.events, "agent-1", 1)]
    others = [at for at, decision in enumerate(run.decisions()) if _publishes(decision.actions, "agent-2")]
    # Interrupted in the very turn in which its attempt was published, however deaf the other one is.
    assert others
    for at in others:
        assert any(isinstance(action, Interrupt) and action.who == "agent-2" for action in run.decisions()[at].actions)
    assert any(interrupts[0] < at < gone for at in others)


def spawns_of(run: Run, agent: str) -> list[str]:
    return [event["text"] for event in run.events("spawned") if event["agent"] == agent]


def interrupts_at(run: Run, who: str, launch: int) -> list[int]:
    """The places of the decisions that interrupt a launch."""
    wanted = Interrupt(who=who, launch=launch)
    return [at for at, decision in enumerate(run.decisions()) if wanted in decision.actions]


def _ends(events: Iterable[Event], agent: str, launch: int) -> bool:
    return any(isinstance(event, Exited) and (event.agent, event.launch) == (agent, launch) for event in events)


def _publishes(actions: Iterable[Action], agent: str) -> bool:
    return any(isinstance(action, Publish) and action.attempt.agent == agent for action in actions)


def test_three_voids_in_a_row_hold_the_queue_and_raise_an_alert(start):
    broken = "import pathlib\n\ndef grade(workspace, private, kind):\n"
    broken += "    if (private / 'broken').exists():\n        raise RuntimeError('the disk of the grader is full')\n"
    broken += "    (private / 'broken').touch()\n    return 0.0\n"
    run = start(COUNTING, grade=broken)
    attempts = run.wait_for_attempts(3)
    assert [attempt.verdict for attempt in attempts[:3]] == [Verdict.VOID] * 3
    wait_until(lambda: run.events("alert"), what="an alert")
    status = wait_until(lambda: (s := run.status())["grading"]["paused"] and s)
    assert status["alerts"]
    assert run.fleet().agents["agent-1"].progress.evals == 0


def test_a_grade_says_how_far_it_is(start, coral):
    slow = "import time\nfrom coral.grader import progress\n\ndef grade(workspace, kind):\n"
    slow += "    if kind != 'baseline':\n        progress(0.4, 'fold 3 of 7')\n        time.sleep(600)\n    return 0\n"
    run = start([*TRY, "hang"], grade=slow)
    told = wait_until(lambda: run.status().get("grading", {}).get("beats"))
    assert told == [{"number": 1, "agent": "agent-1", "progress": 0.4, "message": "fold 3 of 7"}]
    assert "grading #1 (40%, fold 3 of 7)" in coral("status", "--run", str(run.layout.root))[1]
    run.stop()
    assert run.fleet().pending[1].step.value == "queued"


@pytest.mark.parametrize(("watch", "poll"), [("false", 0.3), ("true", 600)])
def test_attempts_are_noticed_by_polls_alone_and_by_notifications_alone(start, watch, poll):
    run = start([*tries(1, 2), "hang"], overrides=(f"run.watch={watch}", f"run.poll_seconds={poll}"))
    run.wait_for_attempts(2)  # a poll in the second case would take ten minutes
    wait_until(lambda: len(run.received("agent-1", "reflect")) == 2, what="both reflections")
    entry = {"name": "mine", "every": 1, "prompt": "look again"}
    assert run.ask({"type": "set_heartbeat", "owner": "agent-1", "heartbeat": entry}, "agent-1")["ok"] is True


def test_submissions_arrive_after_the_watched_inbox_was_replaced(start):
    waits = 'until [ -e "$CORAL_RUN/replaced" ]; do sleep 0.1; done; echo $$ > x.txt; coral eval -m one; sleep 300\n'
    run = start(waits, overrides=("run.watch=true", "run.poll_seconds=1"))
    wait_until(lambda: run.events("spawned"), what="the agent")
    inbox = run.layout.attempts / "inbox"
    inbox.rename(inbox.with_name("inbox-lost"))
    (inbox / "agent-1").mkdir(parents=True)
    (run.layout.root / "replaced").touch()
    run.wait_for_attempts(1)
    # Lost for the notifications too, not only for a poll by chance: the next ones come as well.
    wait_until(lambda: "launch 2 (heartbeat): reflect" in spawns_of(run, "agent-1"), what="its heartbeat")
    run.wait_for_attempts(2)


def test_heartbeats_interrupt_under_nohup_and_the_result_is_printed_before(start):
    slow = "import time\n" + READ_NUMBER.replace("    return", "    time.sleep(0.3)\n    return")
    run = start([*tries(1, 2), "hang"], supervise=False, grade=slow)  # the eval waits when its result comes
    run.supervise(ignored=(signal.SIGINT, signal.SIGHUP))
    wait_until(lambda: len(run.prompts("agent-1")) == 3, what="two heartbeats")
    assert [event["ending"] for event in run.events("exited")] == ["interrupted"] * 2
    assert "#1: 1, new best" in run.layout.output("agent-1", 1).read_text()


def test_a_supervisor_in_the_background_outlives_its_terminal(start):
    run = start(COUNTING)
    run.wait_for_attempts(1)
    run.supervisor.send_signal(signal.SIGHUP)
    run.wait_for_attempts(3)
    assert run.supervisor.poll() is None


def test_a_start_under_nohup_outlives_its_terminal(start, tmp_path):
    run = start(COUNTING, supervise=False)
    words = [sys.executable, "-P", "-m", "coral", "resume", "--plain", "--run", str(run.layout.root)]
    ignoring = ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *words]
    run.supervisor = subprocess.Popen(ignoring, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    run.wait_for_attempts(1)
    run.supervisor.send_signal(signal.SIGHUP)
    run.wait_for_attempts(3)
    run.supervisor.send_signal(signal.SIGTERM)
    run.wait_for_end()
    assert fold(run.layout.journal).fleet.run.finished == RunEnd(RunEndKind.SIGNAL, detail="SIGTERM")


def command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_a_copied_run_takes_over_nothing_and_still_goes_on(start, tmp_path):
    run = start([*TRY, "hang", "hang"])
    run.wait_for_attempts(1)
    wait_until(lambda: len(run.prompts("agent-1")) == 2)
    run.kill()
    # An interpreter that waits for a grade ends without its supervisor.
    living = wait_until(lambda: [pid for pid in run.left() if b"scripted" in command_line(pid)], what="the agent")
    copy = run.at(tmp_path / "copy" / run.layout.root.name)
    shutil.copytree(run.layout.root, copy.layout.root, symlinks=True)
    copy.supervise()
    wait_until(lambda: len(copy.prompts("agent-1")) == 3, what="the copy's own launch")
    copy.stop()
    assert set(living) <= set(run.left())
    run.supervise()


def test_a_run_whose_supervisor_was_killed_can_still_be_stopped(start, coral):
    run = start(["hang"])
    wait_until(lambda: run.prompts("agent-1"))
    run.kill()
    assert run.left()
    assert "nobody supervises this run" in coral("status", "--run", str(run.layout.root))[1]
    stopped = coral_process("stop", "--run", str(run.layout.root))
    assert (stopped.returncode, "has stopped" in stopped.stdout) == (0, True), stopped.stderr
    assert run.left() == []
    assert coral("stop", "--run", str(run.layout.root))[1] == f"{run.layout.root.name} is not running\n"
    assert len(run.prompts("agent-1")) == 1
    assert run.fleet().run.finished


def test_the_agents_of_a_run_whose_task_is_broken_can_still_be_ended(start):
    run = start(["hang"])
    wait_until(lambda: run.prompts("agent-1"))
    run.kill()
    task = run.layout.task_file.read_text()
    run.layout.task_file.write_text("task: [\n")
    stopped = coral_process("stop", "--run", str(run.layout.root))
    assert stopped.returncode == 1
    assert "its processes (1 launch) were ended; its task has to be mended to resume it" in stopped.stderr
    assert run.left() == []
    again = coral_process("stop", "--run", str(run.layout.root))
    assert (again.returncode, "were ended" in again.stderr) == (1, False)
    run.layout.task_file.write_text(task)
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0


def test_what_an_agent_removes_from_its_clone_is_there_again_at_its_next_launch(start):
    again = "if [ -e again ]; then ls .shared/notes && cat AGENTS.md; sleep 600; fi; touch again; "
    ruin = "rm -rf .shared AGENTS.md; mkdir .shared; echo mine > .shared/mine; "
    run = start(again + ruin + "echo 1 > x.txt; coral eval -m one; sleep 600\n")
    wait_until(lambda: run.layout.output("agent-1", 2).exists())
    wait_until(lambda: "coral eval" in run.layout.output("agent-1", 2).read_text(), what="the instructions")


def test_the_alert_of_many_crashes_has_the_programs_last_words(start):
    run = start("echo 'no key: please log in'; exit 1\n", overrides=("run.breaker_crashes=2", "run.backoff=0.1"))
    alerts = wait_until(lambda: run.events("alert"), what="an alert")
    last = "The last one, of agent-1: crashed: exit code 1; the last it said: no key: please log in"
    assert last in alerts[0]["text"]


def test_an_agent_whose_workspace_is_removed_is_told_of_and_goes_on(start, coral):
    run = start("echo up; while [ -e x.txt ]; do sleep 0.1; done; exit 3\n", overrides=("run.backoff=0.1",))
    wait_until(
        lambda: "up" in run.layout.output("agent-1", 1).read_text() if run.layout.output("agent-1", 1).exists() else "",
        what="the first launch",
    )
    shutil.rmtree(run.layout.clone("agent-1"))
    shown = coral("transcript", "agent-1", "--run", str(run.layout.root))
    assert (shown[0], shown[2]) == (0, "")
    # At the second launch the clone is made again; the third begins in it.
    wait_until(lambda: run.layout.output("agent-1", 3).exists(), what="the next launch")
    assert (run.layout.clone("agent-1") / "x.txt").exists()
    told = [event["text"] for event in run.events("crashed")]
    assert any("its workspace was removed, and is made again" in text for text in told)


def test_a_runtime_that_breaks_is_set_aside_and_the_loop_goes_on(start, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "breaking.py").write_text(
        "from coral.runtimes.scripted.runtime import Scripted\n\n\nclass Breaking(Scripted):\n"
        "    def read(self, line):\n        raise KeyError('a line it did not expect')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    run = start([*TRY, "hang"], overrides=("agents.runtime=breaking:Breaking", "run.start_grace=0.5"))
    alerts = wait_until(lambda: run.events("alert"), what="an alert")
    assert "a line it did not expect" in alerts[0]["text"]
    run.wait_for_attempts(1)
    wait_until(lambda: len(run.prompts("agent-1")) >= 2, what="the heartbeat all the same")


def test_a_supervisor_in_the_background_that_cannot_start_says_why(start, capsys):
    run = start(["hang"], supervise=False)
    run.layout.journal.mkdir()
    (run.layout.journal / "000001.jsonl").write_text("this is no journal\n{}\n")
    with capsys.disabled(), pytest.raises(CoralError, match="line 1 is damaged"):  # or pytest has what it says
        detach(run.layout)


def test_what_is_no_submission_or_request_is_set_aside(start):
    run = start(["hang"], overrides=("run.poll_seconds=0.2",))
    wait_until(lambda: run.prompts("agent-1"))
    inbox = run.layout.attempts / "inbox" / "agent-1"
    requests = run.layout.requests_of("agent-1")
    hostile = [b"", b"{", b"\xff\xfe", b"[1]", b'{"id": 3}', b"[" * 5000, b"x" * 200_000]
    for place, content in enumerate(hostile):
        (inbox / f"{place:020d}.json").write_bytes(content)
        (requests / f"hostile-{place}.json").write_bytes(content)
    (inbox / "link.json").symlink_to("/etc/passwd")
    (requests / "folder.json").mkdir()
    os.mkfifo(requests / "pipe.json")
    (requests / f"{'🪸' * 60}.json").write_text(json.dumps({"type": "alert", "text": "hello"}))
    left = [(requests, "hostile-*.json"), (inbox, "0*.json")]
    wait_until(lambda: not any(list(folder.glob(names)) for folder, names in left), what="their removal")
    assert run.ask({"type": "tell", "to": "*", "text": "are you there"})["ok"] is True
    wait_until(lambda: run.events("alert"), what="an alert")
    assert len(run.events("alert")) <= AT_FIRST
    assert run.supervisor.poll() is None
    run.stop()
    assert fold(run.layout.journal).fleet.run.next_number == 1


def test_time_goes_on_from_where_the_clock_stood(start):
    run = start(["hang"], overrides=("budget.hours=1",))
    wait_until(lambda: run.prompts("agent-1"))
    run.stop()
    stood, count = fold(run.layout.journal).clock, len(run.decisions())
    time.sleep(PAUSE)  # nothing else tells how long it stood
    began = time.monotonic()
    run.supervise()
    wait_until(lambda: len(run.prompts("agent-1")) == 2)
    # What the new supervisor did before its first decision counts; the pause does not.
    passed = run.decisions()[count].now.run_time - stood
    assert 0 <= passed < time.monotonic() - began
