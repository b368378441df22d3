"""A node of a real cluster whose disk is full gets no grade for a while, and no try is used up there."""

import pytest
from real_runs import wait_until
from remote_grades import noted, place_of, scores

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster


def test_grades_go_elsewhere_and_the_operator_is_told(begin, cluster, coral):
    values = (1, 2, 3, 4, 5, 6, 7, 8)
    node = cluster.nodes()[0]
    with cluster.full_disk(node):
        run = begin(*values, grader={"ray.max_retries": 0, "ray.resources": "{num_cpus: 2}"})
        run.wait_for_attempts(len(values))
        (alert,) = wait_until(lambda: run.events("alert"), what="the alert")
        shown = coral("cluster", "--run", str(run.layout.root))[1]
    assert scores(run) == [(value, float(value)) for value in values]
    assert f"a node of the cluster gets no grade for a while: {node}: OSError: [Errno 28]" in alert["text"]
    assert f"no grade begins for a while on {node}: OSError: [Errno 28]" in shown
    # The bridge that graded the seed may have lost one, too.
    assert sum(len(noted(run, number, "was lost: ")) for number in values) <= 1
    assert node not in {place_of(run, number)[0] for number in values}
