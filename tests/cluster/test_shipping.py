"""What is sent to the nodes of a real cluster for grades, and how long they keep it."""

import pytest
from real_runs import tries, wait_until

from coral.cluster.shipping import SMALL

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster

GRADE = """
def grade(workspace):
    sizes = [path.stat().st_size for path in workspace.glob("big")]
    return {"score": float((workspace / "x.txt").read_text()), "feedback": str(sizes)}
"""


def test_a_node_keeps_the_base_of_checkouts_until_the_run_stops(cluster, start):
    before = cluster.archives()
    big = {"edit": {"file": "big", "content": "x" * SMALL}}
    keys = {"executor": "ray", "ray.address": cluster.address}
    overrides = tuple(f"grader.{name}={value}" for name, value in keys.items())
    run = start([big, *tries(1, 2, 3), "hang"], overrides=overrides, grade=GRADE)
    made = [(one.score, one.feedback) for one in run.wait_for_attempts(3)]
    assert made == [(score, f"[{SMALL}]") for score in (1.0, 2.0, 3.0)]
    assert len(cluster.archives() - before) == 2, "the grader, and the first checkout"
    run.stop()
    wait_until(lambda: not cluster.archives() - before, what="the end of what was sent")
