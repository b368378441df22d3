"""What agents, graders and a full disk do to the supervisor's files: set aside, told once, and the run goes on."""

import signal
import subprocess
import sys

from real_runs import PATIENCE, is_alive, tries, wait_until, write_task

from attempts.record import attempt_from_dict, to_dict
from attempts.store import Store
from coral.journal import segments

WAITS = """\
echo here
until [ -e "$CORAL_RUN/planted" ]; do sleep 0.05; done
echo 1 > x.txt
coral eval -m mine
exec sleep 300
"""


def test_a_foreign_record_makes_way_and_is_kept(start):
    run = start(WAITS)
    store = Store(run.layout.attempts)
    foreign = attempt_from_dict({**to_dict(store.read(0)), "number": 1, "title": "planted"})
    wait_until(lambda: run.events("spawned"), what="the agent")
    store.publish(foreign)
    (run.layout.root / "planted").touch()
    wait_until(lambda: [attempt for attempt in run.attempts() if attempt.title != "planted"], what="our record")
    wait_until(lambda: len(run.events("spawned")) == 2, what="its heartbeat")
    assert store.read(1).agent == "agent-1"
    (aside,) = run.layout.attempts.glob(".000001.json.*")
    assert "planted" in aside.read_text()
    assert len(run.events("alert")) == 1


def test_where_the_journal_cannot_be_written_the_run_still_ends_and_a_later_supervisor_goes_on(start):
    run = start([*tries(1, 2), "hang"])
    wait_until(lambda: len(run.prompts("agent-1")) == 3, what="both heartbeats")
    # What an agent does is journalled when it changes.
    wait_until(lambda: run.fleet().agents["agent-1"].activity == "hang", what="its last step")
    (journal,) = segments(run.layout.journal)
    size = journal.stat().st_size
    subprocess.run(["prlimit", "--pid", str(run.supervisor.pid), f"--fsize={size}:{size}"], check=True)
    run.supervisor.send_signal(signal.SIGTERM)
    run.wait_for_end()
    assert run.left() == []
    assert journal.stat().st_size == size
    assert not run.fleet().run.finished
    assert len(run.events("alert")) <= 1
    run.supervise()
    wait_until(lambda: len(run.prompts("agent-1")) == 4, what="the next launch")
    run.stop()
    assert len({prompt["session"] for prompt in run.prompts("agent-1")}) == 1
    assert [attempt.number for attempt in run.attempts()] == [1, 2]


PREPARE = """
import sys
from pathlib import Path
from coral.config.load import load
from coral.runs.create import create_run

create_run(load(Path(sys.argv[1]), ()), Path(sys.argv[2]), lambda _: None)
"""


def test_sigterm_while_the_seed_is_graded_leaves_nothing(tmp_path):
    mark, runs = tmp_path / "grader", tmp_path / "runs"
    grade = "import os, pathlib, subprocess, time\n\ndef grade(workspace):\n"
    grade += "    child = subprocess.Popen(['setsid', 'sleep', '300'])\n"
    grade += f"    pathlib.Path({str(mark)!r} + '.new').write_text(f'{{os.getpid()}} {{child.pid}}')\n"
    grade += f"    os.rename({str(mark)!r} + '.new', {str(mark)!r})\n    time.sleep(300)\n"
    task = write_task(tmp_path / "task", ["hang"], grade=grade)
    preparing = subprocess.Popen(
        [sys.executable, "-P", "-c", PREPARE, str(task), str(runs)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until(mark.exists, what="the grader")
        preparing.send_signal(signal.SIGTERM)
        assert preparing.wait(PATIENCE) != 0
    finally:
        preparing.kill()
        preparing.wait(PATIENCE)
    for pid in mark.read_text().split():
        wait_until(lambda pid=int(pid): not is_alive(pid), what="the end of the grader")
    assert [path for path in runs.rglob("*") if path.parent.parent == runs] == []
