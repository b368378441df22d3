"""Grades as jobs of Slurm, by the local executor of submitit: the same records as without, whoever dies."""

import os
import shutil
import signal

import psutil
import pytest
from real_runs import tries, wait_until
from remote_grades import COMMAND, GRADE, assert_one_record_each, assert_the_same, bridges, held, noted, place_of

from attempts.record import Verdict
from coral.errors import CoralError

pytestmark = pytest.mark.slow
MARK = "MARK_OF_THIS_TEST"


@pytest.fixture
def begin(start):
    """A run of scripted tries whose grades are jobs."""

    def begun(*values, executor="slurm", **task):
        keys = {"executor": executor, "slurm.cluster": "local", "timeout": 60, **task.pop("grader", {})}
        overrides = tuple(f"grader.{name}={value}" for name, value in keys.items())
        grade = {} if "command" in task else {"grade": GRADE}
        return start([*tries(*values), "hang"], overrides=overrides, **grade, **task)

    return begun


def graders(mark):
    """The processes of graders on a node that were passed this mark."""
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
        except psutil.Error:
            continue
        found += [process.pid] if "CORAL_GRADE" in environ and environ.get(MARK) == mark else []
    return found


def jobs(run):
    return list((run.layout.private / "cluster" / "tries").iterdir())


def test_records_are_the_same_as_those_of_this_machine(begin):
    values = (1, 3, "refused", "slow", 2)
    here, there = (begin(*values, executor=name, grader={"timeout": 10}) for name in ("local", "slurm"))
    assert_the_same(here, there, 5)
    assert there.attempts()[3].reason == "the grader took longer than 10 seconds"
    wait_until(lambda: not jobs(there), what="the folders of the jobs removed")


def test_a_command_is_graded_in_a_job(begin):
    run = begin(1, 2, command=COMMAND)
    assert [(one.score, one.feedback) for one in run.wait_for_attempts(2)] == [(1.0, "real"), (2.0, "real")]


@pytest.mark.parametrize("who", ["job", "bridge", "supervisor", "bridge and supervisor"])
def test_whoever_is_killed_each_attempt_has_one_record(begin, tmp_path, who):
    free = tmp_path / "free"
    run = begin(1, 2, 3, grader={"args": held(2, free)})
    _, worker = place_of(run, 2)
    if who == "job":
        os.kill(worker, signal.SIGKILL)
    if "bridge" in who:
        for pid in bridges(run):
            os.kill(pid, signal.SIGKILL)
    if "supervisor" in who:
        run.kill()
        run.supervise()
    free.touch()
    assert_one_record_each(run)
    lost = noted(run, 2, "was lost")
    assert len(lost) == (who == "job"), lost


def test_a_job_that_the_next_bridge_does_not_know_is_lost_and_another_one_submitted(begin, tmp_path):
    free = tmp_path / "free"
    run = begin(1, 2, grader={"args": held(2, free)})
    place_of(run, 2)
    (folder,) = jobs(run)
    (folder / "key").unlink()
    for pid in bridges(run):
        os.kill(pid, signal.SIGKILL)
    free.touch()
    assert [one.score for one in run.wait_for_attempts(2)] == [1.0, 2.0]
    assert noted(run, 2, "was lost") == [": its job is not known any more"]


def test_a_grade_that_is_lost_too_often_is_void_and_says_why(begin):
    run = begin(1, grader={"args": "{seconds: 60}", "slurm.max_retries": 0})
    os.kill(place_of(run, 1)[1], signal.SIGKILL)
    (record,) = run.wait_for_attempts(1)
    assert record.verdict is Verdict.VOID
    assert "the cluster lost its grade 1 times; the last time: its job " in record.reason


def test_a_stop_ends_a_grade_in_its_job(begin, monkeypatch, tmp_path):
    monkeypatch.setenv(MARK, str(tmp_path))
    run = begin("slow", grader={"pass_env": f"[{MARK}]"})
    place_of(run, 1)
    wait_until(lambda: graders(str(tmp_path)), what="its grader")
    run.stop()
    wait_until(lambda: not graders(str(tmp_path)) and not bridges(run), what="the end of the job and of the bridge")
    assert jobs(run) == []


def test_a_machine_without_slurm_is_told_when_a_run_begins(begin, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh", "env"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(CoralError, match="there is no sbatch on this machine"):
        begin(1, grader={"slurm.cluster": "slurm"})
