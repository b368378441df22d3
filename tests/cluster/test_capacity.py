"""How many grades are in flight on a real cluster: as many as it has room for, while it grows and shrinks."""

import contextlib

import pytest
from ray_cluster import RayCluster
from real_runs import tries, wait_until
from remote_grades import GRADE, variables

pytestmark = pytest.mark.timeout(1200)  # the first one starts a cluster


@pytest.fixture
def own(tmp_path):
    """Starts a cluster of the test's own, of a head that runs no grade."""
    with contextlib.ExitStack() as ends:

        def made(**kinds):
            cluster = RayCluster(tmp_path, **kinds)
            ends.callback(cluster.close)
            ends.enter_context(variables(cluster.env))
            return cluster

        yield made


def begun(cluster, start, agents, **keys):
    told = {"executor": "ray", "ray.address": cluster.address, "timeout": 300, "args": "{seconds: 5}", **keys}
    overrides = (*(f"grader.{name}={value}" for name, value in told.items()), f"agents.count={agents}")
    return start([*tries(1, 2), "hang"], overrides=overrides, grade=GRADE)


def slots(run):
    return run.status().get("grading", {}).get("slots")


def test_it_follows_the_nodes(own, start):
    small = own()
    first = small.add_node()
    run = begun(small, start, 4)
    wait_until(lambda: slots(run) == 2, what="the room of a node")
    small.add_node()
    wait_until(lambda: slots(run) == 4, what="the room of two nodes")
    small.kill_node(first)
    wait_until(lambda: slots(run) == 2, what="the room of the other")
    assert [one.score for one in run.wait_for_attempts(8)] == [one.score for one in run.attempts()]
    small.wait_until_idle()


def test_a_cluster_without_nodes_grows_for_what_waits(own, start):
    growing = own(grows_to=2)
    run = begun(growing, start, 4, **{"ray.autoscaling": "true"})
    wait_until(lambda: slots(run) == 8, 120, "both nodes")
    run.wait_for_attempts(8)
    assert {one.score for one in run.attempts()} == {1.0, 2.0}
    run.stop()
