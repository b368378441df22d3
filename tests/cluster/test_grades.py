"""Grades on a real cluster: the same records as on this machine, whoever dies."""

import os
import signal

import pytest
from real_runs import wait_until
from remote_grades import (
    COMMAND,
    assert_it_waits_for,
    assert_one_record_each,
    assert_the_same,
    bridges,
    held,
    noted,
    place_of,
    records,
)

from attempts.record import Verdict
from coral.errors import CoralError

pytestmark = pytest.mark.timeout(1200)  # the first one starts the cluster


def test_records_are_the_same_as_those_of_this_machine(begin):
    values = (1, 3, "refused", "slow", 2)
    here, there = (begin(*values, executor=name, grader={"timeout": 5}) for name in ("local", "ray"))
    assert_the_same(here, there, 5)
    assert there.attempts()[3].reason == "the grader took longer than 5 seconds"


def test_a_command_grades_there_as_it_does_here(begin):
    here, there = (begin(1, 2, executor=name, command=COMMAND) for name in ("local", "ray"))
    assert records(here, 2) == records(there, 2)
    assert [one.feedback for one in there.attempts()] == ["real", "real"]


@pytest.mark.parametrize("who", ["worker", "bridge", "supervisor", "bridge and supervisor", "node"])
def test_whoever_is_killed_each_attempt_has_one_record(begin, cluster, who, tmp_path):
    run = begin(1, 2, 3, grader={"args": held(2, tmp_path / "free")})
    node, worker = place_of(run, 2)
    if who == "worker":
        os.kill(worker, signal.SIGKILL)
    if who == "node":
        cluster.kill_node(node)
        # The worker lives for a second or so after its node, and would end the grade.
        wait_until(lambda: noted(run, 2, "was lost"), what="the loss of grade 2")
        cluster.add_node()
    if "bridge" in who:
        for pid in bridges(run):
            os.kill(pid, signal.SIGKILL)
    if "supervisor" in who:
        run.kill()
    (tmp_path / "free").touch()
    if "supervisor" in who:
        run.supervise()
    assert_one_record_each(run)
    # The owner may have been on the node that died: then a second try may be lost with it.
    lost = noted(run, 2, "was lost")
    assert len(lost) in {"worker": (1,), "node": (1, 2)}.get(who, (0,)), lost


def test_an_owner_that_outlived_its_bridge_is_replaced_once_it_has_no_grades(begin, cluster, tmp_path):
    """Ray would start a worker for each of its later grades."""
    run = begin(1, 2, 3, grader={"args": held(2, tmp_path / "free")})
    place_of(run, 2)
    before = set(cluster.owners())
    for pid in bridges(run):
        os.kill(pid, signal.SIGKILL)
    (tmp_path / "free").touch()
    assert_one_record_each(run)
    assert noted(run, 2, "was lost") == noted(run, 3, "was lost") == []
    assert len(set(cluster.owners()) - before) == 1


@pytest.mark.parametrize(("cards", "seen"), [(0, ""), (1, "5")])
def test_a_grade_sees_the_graphics_cards_that_it_asked_for(begin, cluster, monkeypatch, cards, seen):
    """The node has them by a variable, as one of Slurm's has."""
    monkeypatch.setitem(cluster.env, "CUDA_VISIBLE_DEVICES", "5")
    node = cluster.add_node("--num-gpus=1", '--resources={"rack": 1}')
    try:
        shown = 'echo \'{"score": 1, "feedback": "cards \'$CUDA_VISIBLE_DEVICES\'"}\' > $CORAL_RESULT'
        resources = f"{{num_cpus: 1, num_gpus: {cards}, custom: {{rack: 1}}}}"
        run = begin(1, command=shown, grader={"ray.resources": resources})
        assert [one.feedback.removeprefix("cards").strip() for one in run.wait_for_attempts(1)] == [seen]
        run.stop()
    finally:
        cluster.remove_node(node)


def test_grades_whose_owner_died_with_the_bridge_begin_again(begin, cluster, tmp_path):
    run = begin(1, 2, grader={"args": held(2, tmp_path / "free")})
    place_of(run, 2)
    for pid in (*bridges(run), *cluster.owners()):
        os.kill(pid, signal.SIGKILL)
    (tmp_path / "free").touch()
    assert [(one.score, one.reason) for one in run.wait_for_attempts(2)] == [(1.0, ""), (2.0, "")]
    assert noted(run, 2, "was lost: ") == ["the process that owned it ended"]


def test_without_a_head_no_grade_begins_until_it_is_back(begin, cluster, tmp_path):
    until = tmp_path / "free"
    assert_it_waits_for(cluster.without_head(), begin(1, 2, 3, grader={"args": held(2, until)}), until)


def test_a_grade_that_is_lost_too_often_is_void_and_says_why(begin):
    run = begin("slow", grader={"ray.max_retries": 0})
    os.kill(place_of(run, 1)[1], signal.SIGKILL)
    (record,) = run.wait_for_attempts(1)
    assert record.verdict is Verdict.VOID
    assert "the cluster lost its grade 1 times; the last time: " in record.reason


def test_a_stop_ends_a_grade_on_its_node(begin, cluster):
    run = begin("slow")
    place_of(run, 1)
    wait_until(cluster.graded, what="the grader on its node")
    run.stop()
    cluster.wait_until_idle()
    wait_until(lambda: not bridges(run), what="the end of the bridge")


def test_a_grade_that_no_node_can_ever_run_is_refused_at_once(begin):
    with pytest.raises(CoralError, match="it needs 8 GPUs; the largest node has 0"):
        begin(1, grader={"ray.resources": "{num_gpus: 8}"})


def test_a_head_that_is_not_there_is_named(begin):
    with pytest.raises(CoralError, match=r"the head of the cluster at 127\.0\.0\.1:9 cannot be reached"):
        begin(1, grader={"ray.address": "127.0.0.1:9"})


def test_a_refused_token_is_said_and_nothing_hangs(begin, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("0" * 48)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(CoralError, match=r"(?s)cannot grade the seed: .*127\.0\.0\.1:\d+ .*(token|Token)"):
        begin(1)
