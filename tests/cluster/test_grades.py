"""Grades on a real cluster: the same records as on this machine, whoever dies."""

import os
import signal

import pytest
from real_runs import tries, wait_until

from attempts.record import Verdict

GRADE = """
import os, sys, time

def grade(workspace, artifacts, args):
    text = (workspace / 'x.txt').read_text()
    print('grading', text, flush=True)
    print('careful', file=sys.stderr, flush=True)
    (artifacts / 'text.txt').write_text(text)
    if text == 'slow':
        time.sleep(600)
    if text == 'killed':
        os.kill(os.getpid(), 9)
    if text == 'refused':
        return {'failed': 'it is refused', 'feedback': 'no'}
    time.sleep(args.get('seconds', 0))
    return {'score': float(text), 'metrics': {'half': float(text) / 2, 'name': 'a'}, 'feedback': f'got {text}'}
"""
SAME = ("number", "kind", "tree", "title", "order", "verdict", "score", "reason", "feedback", "metrics", "channel")


def on(cluster, **ray):
    more = "".join(f"\n    {name}: {value}" for name, value in ray.items())
    return f'grader:\n  executor: ray\n  ray:\n    address: "{cluster.address}"{more}\n'


@pytest.fixture
def begin(start, cluster):
    """A run of scripted tries whose grades run on the cluster."""

    def begun(*values, slots=1, seconds=0, timeout=60, grade=GRADE, max_retries=2, executor="ray", **task):
        overrides = (
            f"grader.executor={executor}",
            f"grader.ray.address={cluster.address}",
            f"grader.ray.max_retries={max_retries}",
            f"grader.slots={slots}",
            f"grader.args={{seconds: {seconds}}}",
            f"grader.timeout={timeout}",
        )
        return start([*tries(*values), "hang"], grade=grade, overrides=overrides, **task)

    return begun


def place_of(run, number):
    """The node and the process of the worker that runs a grade, once it is there."""
    log = run.layout.grading(number) / "cluster.log"

    def found():
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split("runs on ")[1].split(", process ") for line in lines if "runs on" in line]

    node, pid = wait_until(found, what=f"grade {number} on a node")[-1]
    return node, int(pid)


def test_records_are_the_same_as_those_of_this_machine(begin):
    values = (1, 3, "refused", "slow", 2)
    here = begin(*values, executor="local", timeout=5)
    there = begin(*values, timeout=5)
    records = [
        [{name: getattr(one, name) for name in SAME} for one in run.wait_for_attempts(5)] for run in (here, there)
    ]
    assert records[0] == records[1]
    for name in ("stdout", "stderr"):
        assert [(run.layout.grading(2) / name).read_text() for run in (here, there)][0] != ""
        assert (here.layout.grading(2) / name).read_text() == (there.layout.grading(2) / name).read_text()
    wait_until((there.layout.grade(2) / "text.txt").exists)
    assert (there.layout.grade(2) / "text.txt").read_text() == "3"
