"""Grades that run on a cluster: a grader that can be told what to do, and where each of its grades is."""

import contextlib
import json
from pathlib import Path

import pytest
from real_runs import wait_until

GRADE = """
import os, sys, time

def grade(workspace, artifacts, args):
    text = (workspace / 'x.txt').read_text()
    print('grading', text, flush=True)
    print('careful', file=sys.stderr, flush=True)
    (artifacts / 'text.txt').write_text(text)
    if text == 'slow':
        time.sleep(600)
    if text == 'refused':
        return {'failed': 'it is refused', 'feedback': 'no'}
    if text != '0':
        time.sleep(args.get('seconds', 0))
    while text == args.get('held') and not os.path.exists(args['until']):
        time.sleep(0.05)
    return {'score': float(text), 'metrics': {'half': float(text) / 2, 'name': 'a'}, 'feedback': f'got {text}'}
"""
COMMAND = "echo by a command; echo '{\"score\": '$(cat x.txt)', \"feedback\": \"'$CORAL_KIND'\"}' > $CORAL_RESULT"
SAME = ("number", "kind", "tree", "title", "order", "verdict", "score", "reason", "feedback", "metrics", "channel")


def held(value: int, until: Path) -> str:
    """Return the arguments of this grader with which its grade of this value ends once the file `until` is there."""
    return json.dumps({"held": str(value), "until": str(until)})


def noted(run, number, text):
    """Return what stands behind these words in the log that a grade's local process keeps of its way over the
    cluster."""
    log = run.layout.grading(number) / "cluster.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(text)[2] for line in lines if text in line]


def place_of(run, number):
    """Return the node and the process of the worker that runs a grade, once it is there."""
    line = wait_until(lambda: noted(run, number, "runs on "), what=f"grade {number} on a node")[-1]
    node, _, pid = line.partition(", process ")
    return node, int(pid)


def bridges(run):
    """Return the processes of a run that speak to the cluster, or wait to."""
    folder = str(run.layout.private / "cluster").encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if folder in words and any(b"coral.cluster." in word and b"_bridge" in word for word in words):
            found.append(int(path.parent.name))
    return found


def scores(run):
    return [(one.number, one.score) for one in run.attempts()]


def is_start(action, number):
    return type(action).__name__ == "StartGrader" and action.number == number


def records(run, count):
    """Return what the records of the first attempts say, but for times and places."""
    return [{name: getattr(one, name) for name in SAME} for one in run.wait_for_attempts(count)]


def assert_the_same(here, there, count):
    """Assert that a run whose grades ran on a cluster has the records, the output and the artifacts of one without."""
    assert records(here, count) == records(there, count)
    for name in ("stdout", "stderr"):
        text = (there.layout.grading(2) / name).read_text()
        assert text == (here.layout.grading(2) / name).read_text() != ""
    wait_until((there.layout.grade(2) / "text.txt").exists)
    assert (there.layout.grade(2) / "text.txt").read_text() == (here.layout.grade(2) / "text.txt").read_text()


def assert_one_record_each(run):
    """Assert that three attempts have these scores, each one record, and that the launch that graded the second first
    graded it to its end."""
    run.wait_for_attempts(3)
    assert scores(run) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    launches = [action.launch for made in run.decisions() for action in made.actions if is_start(action, 2)]
    assert launches == [1], "the supervisor has taken its grade over"


def assert_it_waits_for(leader, run, until):
    """Of three attempts of a run, the second is being graded when the cluster loses its `leader`, a context: no grade
    begins without it, all goes on when it is back, and the operator is told of both. The second is `held` until then.
    """
    place_of(run, 2)
    with leader:
        wait_until(lambda: run.status()["grading"]["paused"], 180, "the pause of grading")
        until.touch()
    wait_until(lambda: not run.status()["grading"]["paused"], 180, "the end of the pause")
    assert_one_record_each(run)
    begins, ends = (event["text"] for event in run.events("alert"))
    assert begins.startswith("no grade begins until the cluster can be used again: ")
    assert ends == "the cluster can be used again; grading continues"


@contextlib.contextmanager
def variables(env):
    """Set these variables until the context ends."""
    patch = pytest.MonkeyPatch()
    for name, value in env.items():
        patch.setenv(name, value)
    try:
        yield
    finally:
        patch.undo()
