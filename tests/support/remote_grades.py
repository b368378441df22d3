"""Grades that run on a cluster: a grader that can be told what to do, and where each of its grades is."""

from pathlib import Path

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
    return {'score': float(text), 'metrics': {'half': float(text) / 2, 'name': 'a'}, 'feedback': f'got {text}'}
"""
COMMAND = "echo by a command; echo '{\"score\": '$(cat x.txt)', \"feedback\": \"'$CORAL_KIND'\"}' > $CORAL_RESULT"
SAME = ("number", "kind", "tree", "title", "order", "verdict", "score", "reason", "feedback", "metrics", "channel")


def noted(run, number, text):
    """What stands behind these words in the log that a grade's local process keeps of its way over the cluster."""
    log = run.layout.grading(number) / "cluster.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(text)[2] for line in lines if text in line]


def place_of(run, number):
    """The node and the process of the worker that runs a grade, once it is there."""
    line = wait_until(lambda: noted(run, number, "runs on "), what=f"grade {number} on a node")[-1]
    node, _, pid = line.partition(", process ")
    return node, int(pid)


def bridges(run):
    """The processes of a run that speak to the cluster, or wait to."""
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
