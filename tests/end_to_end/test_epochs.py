"""A run whose task changes: the old scores are kept, marked and not compared, whoever dies meanwhile."""

import json
from pathlib import Path
from typing import Any

from real_runs import READ_NUMBER, coral_process, wait_until
from records import readable

from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.config.load import load_frozen

FOREVER = "echo up; while :; do echo $RANDOM$(date +%N) > x.txt; coral eval -m try >/dev/null; sleep 0.2; done\n"
NEGATED = READ_NUMBER.replace("float(", "-float(")


def said(run: Any, *words: str) -> Any:
    done = coral_process(*words, "--run", str(run.layout.root), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def resume(run: Any, *words: str) -> str:
    done = coral_process("resume", "--detach", "--run", str(run.layout.root), *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def task_of(run: Any) -> Path:
    return load_frozen(run.layout.task_file).folder


def of_epoch(run: Any, epoch: int) -> list[Any]:
    return [attempt for attempt in readable(Store(run.layout.attempts)) if attempt.epoch == epoch]


def test_a_changed_grader_is_taken_in_as_a_new_epoch(start, tmp_path) -> None:
    run = start(FOREVER)
    wait_until(lambda: len(of_epoch(run, 1)) > 3, what="a few attempts")
    run.stop()
    before = said(run, "status")
    (task_of(run) / "grade.py").write_text(NEGATED)
    told = resume(run)
    assert "continues with its own copy of grade.py" in told
    assert "coral resume --reload" in told
    wait_until(lambda: run.status()["state"] == "running", what="the resume")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    assert of_epoch(run, 2) == []
    told = resume(run, "--reload")
    assert "epoch 2 begins (grade.py changed): the seed scores 0 now" in told
    wait_until(lambda: len(of_epoch(run, 2)) > 3, what="attempts of the new epoch")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    seed, *others = sorted(of_epoch(run, 2), key=lambda attempt: attempt.order)
    assert (seed.kind, seed.verdict, seed.score) == (Kind.BASELINE, Verdict.NEW_BEST, 0)
    assert all(other.against in (None, *(held.number for held in of_epoch(run, 2))) for other in others)
    status, listed = said(run, "status"), said(run, "log", "-n", "0")
    assert (status["epoch"], status["baseline_number"]) == (2, seed.number)
    assert status["best"]["number"] == seed.number != before["best"]["number"]
    assert {row["epoch"] for row in listed} == {2}
    screen = coral_process("log", "--recent", "-n", "0", "--run", str(run.layout.root), COLUMNS="300").stdout
    assert screen.count(", epoch 1") == len(of_epoch(run, 1))
    old = coral_process("show", "1", "--run", str(run.layout.root)).stdout
    assert "before the task changed" in old
    assert "against the seed" not in old
    assert "nobody has beaten the seed (0)" in coral_process("status", "--run", str(run.layout.root)).stdout
    prompts = [path.read_text() for path in sorted(run.layout.logs("agent-1").glob("*.prompt.md"))]
    prompt = next(text for text in prompts if "## Heartbeat: changed" in text)
    assert f"begin anew with the seed, #{seed.number}" in prompt
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0
    assert run.left() == []


def test_a_commit_that_was_graded_before_the_change_is_graded_anew(start, tmp_path) -> None:
    once = "echo up; echo 7 > x.txt; coral eval -m seven; echo waits; while :; do sleep 0.1; [ -e ../again ] && "
    once += "{ rm ../again; coral eval -m 'seven again' > ../said; }; done\n"
    run = start(once)
    wait_until(lambda: any(attempt.score == 7 for attempt in of_epoch(run, 1)), what="the attempt")
    run.stop()
    (task_of(run) / "grade.py").write_text(NEGATED)
    (run.layout.clone("agent-1").parent / "again").touch()
    resume(run, "--reload")
    wait_until(lambda: any(attempt.score == -7 for attempt in of_epoch(run, 2)), what="its new grade")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    (again,) = [attempt for attempt in of_epoch(run, 2) if attempt.score == -7]
    (first,) = [attempt for attempt in of_epoch(run, 1) if attempt.score == 7]
    assert again.tree == first.tree
    assert again.of is None


def test_agents_and_grades_that_went_on_without_a_supervisor_meet_the_new_task(start, tmp_path) -> None:
    slow = READ_NUMBER.replace("def", "import time\n\n\ndef", 1).replace("    return", "    time.sleep(60)\n    return")
    run = start(FOREVER, grade=READ_NUMBER, supervise=False)
    (run.layout.grader / "grade.py").write_text(slow)  # so that a grade is on its way when the supervisor dies
    run.supervise()
    (number,) = wait_until(lambda: run.status().get("grading", {}).get("running"), what="a slow grade")
    run.kill()
    (task_of(run) / "grade.py").write_text(NEGATED)
    resume(run, "--reload")
    graded = wait_until(lambda: [held for held in of_epoch(run, 2) if held.number == number], what="its new grade")
    assert graded[0].score is not None
    assert graded[0].score <= 0
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    assert run.left() == []


def test_reload_without_a_change_says_so_and_a_broken_task_is_refused(start, tmp_path) -> None:
    run = start(FOREVER)
    wait_until(lambda: of_epoch(run, 1), what="the run")
    run.stop()
    (task_of(run) / "grade.py").write_text("def grade(workspace):\n    return None\n")
    done = coral_process("resume", "--reload", "--detach", "--run", str(run.layout.root))
    assert done.returncode == 1
    assert "cannot grade the seed" in done.stderr
    (task_of(run) / "task.yaml").rename(task_of(run) / "gone.yaml")
    done = coral_process("resume", "--reload", "--detach", "--run", str(run.layout.root))
    assert done.returncode == 1
    assert "cannot reload the task" in done.stderr
    (task_of(run) / "gone.yaml").rename(task_of(run) / "task.yaml")
    (task_of(run) / "grade.py").write_text(READ_NUMBER)
    assert "nothing of the task has changed" in resume(run, "--reload")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    assert of_epoch(run, 2) == []
