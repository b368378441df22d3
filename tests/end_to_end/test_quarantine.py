"""What agents, graders and a full disk do to the supervisor's files: set aside, told once, and the run goes on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import PATIENCE, TRY, Run, is_alive, tries, wait_until, write_task

from attempts.record import attempt_from_dict, to_dict
from attempts.store import Store
from coral.journal import segments


def still_supervised(run: Run) -> bool:
    return run.supervisor is not None and run.supervisor.poll() is None


def wait_for_answer(run: Run) -> None:
    """The supervisor has looked at everything that lay there before this."""
    assert run.ask({"type": "tell", "to": "*", "text": "are you there"})["ok"] is True


def plant_folder(folder: Path) -> None:
    (folder / "x.json").mkdir()


def plant_pipe(folder: Path) -> None:
    os.mkfifo(folder / "x.json")


def plant_long_name(folder: Path) -> None:
    (folder / f"{'🪸' * 60}.json").write_text(json.dumps({"type": "alert", "text": "hello"}))


@pytest.mark.parametrize("plant", [plant_folder, plant_pipe, plant_long_name])
def test_what_is_no_file_or_has_no_fit_name_is_no_request(start, plant):
    run = start(["hang"], overrides=("run.poll_seconds=0.2",))
    wait_until(lambda: run.prompts("agent-1"), what="the first launch")
    plant(run.layout.requests_of("agent-1"))
    for _ in range(2):
        wait_for_answer(run)
    assert len(run.events("alert")) <= 1
    assert still_supervised(run)


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


BEATS = {
    "pipe": "    path.unlink(missing_ok=True)\n    os.mkfifo(path)\n",
    "nested": "    path.write_text('[' * 4000)\n",
}


@pytest.mark.parametrize("beats", BEATS)
def test_a_grader_whose_beats_are_no_beats_is_graded_all_the_same(start, beats):
    grade = "import os, pathlib, time\n\ndef grade(workspace, private, kind):\n    if kind == 'baseline':\n"
    grade += "        return 0.0\n    path = pathlib.Path(os.environ['CORAL_BEATS'])\n" + BEATS[beats]
    grade += "    (private / 'laid').touch()\n"
    grade += "    while not (private / 'go').exists():\n        time.sleep(0.05)\n    return 1.0\n"
    run = start([*TRY, "hang"], grade=grade)
    wait_until(lambda: (run.layout.grader / "laid").exists(), what="the beats file")
    for _ in range(2):
        shown = run.layout.status.stat().st_mtime_ns
        wait_for_answer(run)
        wait_until(lambda before=shown: run.layout.status.stat().st_mtime_ns != before, what="a new status")
    assert run.status()["grading"]["running"] == [1]
    (run.layout.grader / "go").touch()
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.score == 1
    assert len(run.events("alert")) <= 1
    assert still_supervised(run)


def test_where_the_journal_cannot_be_written_the_run_still_ends_and_a_later_supervisor_goes_on(start):
    run = start([*tries(1, 2), "hang"])
    wait_until(lambda: len(run.prompts("agent-1")) == 3, what="both heartbeats")
    wait_until(lambda: run.fleet().agents["agent-1"].has_output, what="a sign of life")
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


def test_an_agent_that_puts_a_folder_in_the_place_of_shared_still_gets_its_next_launch(start):
    script = "echo here; if [ -e again ]; then sleep 600; fi; touch again; rm -rf .shared; mkdir .shared; "
    run = start(script + "echo mine > .shared/mine; echo 1 > x.txt; coral eval -m one; sleep 600\n")
    output = run.layout.output("agent-1", 2)
    wait_until(lambda: output.exists() and "here" in output.read_text(), what="the next launch")
    assert len(run.events("alert")) <= 1
    assert still_supervised(run)


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


def test_resume_refuses_another_number_of_agents(start, coral):
    run = start(["hang"])
    wait_until(lambda: run.prompts("agent-1"), what="the first launch")
    run.stop()
    task, decided = run.layout.task_file.read_text(), len(run.decisions())
    code, _, said = coral("resume", "--run", str(run.layout.root), "agents.count=5")
    assert code != 0
    assert "cannot change the number of agents of a run" in said
    assert run.layout.task_file.read_text() == task
    assert len(run.decisions()) == decided
