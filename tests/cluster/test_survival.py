"""Many grades on a cluster whose processes are killed at random: the same records as on this machine, each once.

The long form: `GRADES=1000 pytest tests/cluster/test_survival.py`.
"""

import json
import os
import random

import pytest
from cluster_deaths import Deaths
from real_runs import wait_until
from remote_grades import bridges
from survival import assert_attempts_are_whole, replay

from attempts.record import CLOSED, OPEN, Verdict, to_dict

GRADES = int(os.environ.get("GRADES", "96"))
AGENTS = min(50, GRADES // 8)
EACH = GRADES // AGENTS
SECONDS = 120 + 3 * GRADES
pytestmark = pytest.mark.timeout(600 + 3 * SECONDS)

GRADE = """
import time

def grade(workspace, artifacts):
    text = (workspace / 'x.txt').read_text()
    (artifacts / 'text.txt').write_text(text)
    if text == '0':
        return 0.0
    tried, agent = text.split()
    number = 100 * int(tried) + int(agent.removeprefix('agent-'))
    print('grading', text, flush=True)
    time.sleep(0.5 * (number % 5))
    if number % 7 == 0:
        return {'failed': 'it is refused', 'feedback': text}
    return {'score': number, 'metrics': {'half': number / 2, 'name': text}, 'feedback': f'got {text}'}
"""
STEPS = [{"edit": {"file": "x.txt", "content": "{n} {agent}"}}, {"submit": "try {n}"}]
SCRIPT = [{"repeat": {"times": EACH, "steps": STEPS}}, "hang"]
RARE = "heartbeats=[{name: reflect, every: 10}, {name: consolidate, every: 100}, {name: redirect, stagnant: 100000}]"
# What is another one in each run: times, places, and what depends on who was first.
OTHERS = {
    "number",
    "commit",
    "parent",
    "submission",
    "submitted_at",
    "published_at",
    "order",
    "verdict",
    "of",
    "seconds",
}
OTHERS |= {"against", "delta"}


@pytest.fixture
def begin(cluster, start):
    def begun(executor):
        keys = {"executor": executor, "slots": 6 if executor == "local" else 12, "timeout": 60}
        keys |= {"ray.address": cluster.address, "ray.max_retries": 100}
        overrides = [*(f"grader.{name}={value}" for name, value in keys.items()), f"agents.count={AGENTS}", RARE]
        return start(SCRIPT, overrides=tuple(overrides), grade=GRADE)

    return begun


def described(run):
    """The bytes of each record, without what is another one in each run, and of its artifact."""
    found = {}
    for record in run.attempts():
        data = {name: value for name, value in to_dict(record).items() if name not in OTHERS}
        key = record.agent, record.title
        assert key not in found, f"{key} has two records"
        artifact = run.layout.grade(record.number) / "text.txt"
        found[key] = json.dumps(data, sort_keys=True), artifact.read_text() if artifact.exists() else ""
    return found


def is_over(run):
    return len(run.attempts()) == AGENTS * EACH


def test_whoever_is_killed_records_are_those_of_this_machine_and_each_is_there_once(begin, cluster):
    here = begin("local")
    wait_until(lambda: is_over(here), SECONDS, "the last grade on this machine")
    here.stop()
    there = begin("ray")
    deaths = Deaths(there, cluster, random.Random(GRADES))
    deaths.follow(lambda: is_over(there), SECONDS)
    assert len(+deaths.count) >= 5, deaths.count  # kinds of processes
    there.stop()
    cluster.wait_until_idle()
    wait_until(lambda: not bridges(there), what="the end of the bridge")
    _, _, fleet = replay(there)
    attempts = {(record.agent, record.title): record for record in assert_attempts_are_whole(there, fleet)}
    expected, found = described(here), described(there)
    assert found.keys() == expected.keys()
    for key, record in attempts.items():
        wanted = expected[key]
        if record.number in deaths.adopted and record.channel == OPEN:
            # As on this machine: a supervisor that takes a grade over does not have its channel.
            wanted = wanted[0].replace(f'"channel": "{CLOSED}"', f'"channel": "{OPEN}"'), wanted[1]
        if found[key] != wanted:
            assert record.number in deaths.graders, f"found {found[key]}, wanted {wanted}"
            assert record.verdict is Verdict.FAILED
            assert record.reason.startswith("the grader crashed: it was ended by SIGKILL")
    print(f"{len(found)} records, {len(deaths.graders)} graders killed, deaths: {dict(deaths.count)}")
