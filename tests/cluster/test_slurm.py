"""Grades as jobs of a real Slurm, which keeps no accounts: the same records as on this machine, whatever is lost."""

import json
import os
import re

import pytest
import slurm_cluster
from real_runs import tries, wait_until, write_task
from remote_grades import (
    GRADE,
    assert_it_waits_for,
    assert_the_same,
    bridges,
    held,
    noted,
    place_of,
    scores,
    variables,
)

from coral.errors import CoralError

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if reason := slurm_cluster.why_not():
        pytest.skip(f"NOT RUN: {reason}")
    made = slurm_cluster.SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        with variables(made.env):
            yield made
    finally:
        made.close()


@pytest.fixture
def begin(slurm, start):
    def begun(*values, executor="slurm", **grader):
        keys = {"executor": executor, "timeout": 60, **grader}
        overrides = tuple(f"grader.{name}={value}" for name, value in keys.items())
        return start([*tries(*values), "hang"], overrides=overrides, grade=GRADE)

    return begun


def test_records_are_the_same_as_those_of_this_machine(begin, slurm):
    values = (1, 2, "slow", "refused")
    here, there = (begin(*values, executor=name, timeout=8) for name in ("local", "slurm"))
    assert_the_same(here, there, 4)
    assert there.attempts()[2].reason == "the grader took longer than 8 seconds"
    wait_until(lambda: not slurm.jobs(), what="an empty queue")


def test_a_job_that_was_killed_is_submitted_again(begin, tmp_path):
    run = begin(1, 2, args=held(2, tmp_path / "free"))
    _, worker = place_of(run, 2)
    os.kill(worker, 9)
    (tmp_path / "free").touch()
    run.wait_for_attempts(2)
    assert scores(run) == [(1, 1.0), (2, 2.0)]
    assert len(noted(run, 2, "was lost")) == 1


def test_jobs_outlive_bridge_and_supervisor(begin, tmp_path):
    run = begin(1, 2, args=held(2, tmp_path / "free"))
    place_of(run, 2)
    for pid in bridges(run):
        os.kill(pid, 9)
    run.kill()
    (tmp_path / "free").touch()
    run.supervise()
    run.wait_for_attempts(2)
    assert scores(run) == [(1, 1.0), (2, 2.0)]
    assert noted(run, 2, "was lost") == []


def test_without_a_controller_no_grade_begins_until_it_is_back(begin, slurm, tmp_path):
    until = tmp_path / "free"
    assert_it_waits_for(slurm.without_controller(), begin(1, 2, 3, args=held(2, until)), until)


def test_a_stop_cancels_the_job(begin, slurm):
    run = begin("slow")
    place_of(run, 1)
    assert slurm.jobs() != []
    run.stop()
    wait_until(lambda: not slurm.jobs(), what="an empty queue")


def test_what_slurm_does_not_take_is_said_when_a_run_begins(begin):
    with pytest.raises(CoralError, match=r"cannot grade on the cluster: .*invalid partition"):
        begin(1, **{"slurm.partition": "nowhere"})


def test_doctor_asks_slurm_whether_it_would_take_a_grade(slurm, coral, tmp_path):
    path = write_task(tmp_path, ["hang"], grade=GRADE) / "task.yaml"
    text = path.read_text()

    def says(keys):
        path.write_text(text.replace("noise: 0", f"executor: slurm\n  slurm: {{{keys}}}"))
        found = json.loads(coral("doctor", str(tmp_path), "--json")[1])
        return [(one["state"], one["text"]) for one in found["checks"] if one["name"] == "cluster"]

    assert says("cpus: 2, options: {time: '5'}") == [("well", "it answers")]
    ((state, refused),) = says("partition: nowhere")
    assert (state, "invalid partition" in refused.lower()) == ("wrong", True), refused


def test_a_controller_that_does_not_answer_is_said_when_a_run_begins(begin, slurm, tmp_path, monkeypatch):
    path = tmp_path / "slurm.conf"
    path.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=9", (slurm.folder / "slurm.conf").read_text()))
    monkeypatch.setenv("SLURM_CONF", str(path))
    with pytest.raises(CoralError, match=r"Slurm does not take its job: .*(controller|connect)"):
        begin(1)
