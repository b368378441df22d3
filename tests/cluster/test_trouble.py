"""What a cluster cannot do, or does late: clear words, and no grade that waits for ever."""

import json
import subprocess
import sys

import pytest
from ray_cluster import slow_link
from real_runs import wait_until
from remote_grades import held, noted, place_of, scores

from attempts.record import Verdict
from coral.errors import CoralError

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster

VERSION = """
import json, sys
import ray
from ray._common.usage.usage_constants import CLUSTER_METADATA_KEY
from ray._private.ray_constants import KV_NAMESPACE_CLUSTER
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
for line in sys.stdin:
    found = json.loads(_internal_kv_get(CLUSTER_METADATA_KEY, namespace=KV_NAMESPACE_CLUSTER))
    print(found["python_version"], flush=True)
    changed = json.dumps({**found, "python_version": line.strip()}).encode()
    _internal_kv_put(CLUSTER_METADATA_KEY, changed, overwrite=True, namespace=KV_NAMESPACE_CLUSTER)
print("end", flush=True)
"""


@pytest.fixture
def python_of(cluster):
    """Says of which version of Python the cluster is, as its head has it, until the end of the test."""
    pipe = subprocess.PIPE
    line = [sys.executable, "-P", "-c", VERSION, cluster.address]
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as driver:

        def says(version):
            driver.stdin.write(f"{version}\n")
            driver.stdin.flush()
            return driver.stdout.readline().strip()

        before = says("3.99.1")
        yield "3.99.1", before
        says(before)
        driver.stdin.close()
        assert driver.stdout.readline() == "end\n"


def test_another_python_on_the_cluster_is_named_with_both_versions(begin, python_of):
    there, here = python_of
    with pytest.raises(CoralError) as raised:
        begin(1)
    assert "Version mismatch" in str(raised.value)
    assert all(f"Python: {version}" in str(raised.value) for version in (there, here)), str(raised.value)


def test_a_grade_on_a_node_that_is_frozen_begins_again_on_another(begin, cluster, tmp_path):
    run = begin(1, grader={"args": held(1, tmp_path / "free")})
    node, _ = place_of(run, 1)
    with cluster.frozen(node):
        (why,) = wait_until(lambda: noted(run, 1, "was lost: "), what="the loss of the grade")
        (tmp_path / "free").touch()
        run.wait_for_attempts(1)
    assert scores(run) == [(1, 1.0)]
    assert why in {"its node died", "the process that owned it ended"}, why  # the owner may be on that node
    assert place_of(run, 1)[0] != node


def test_files_of_a_grader_that_the_store_of_objects_has_no_room_for_are_sent_all_the_same(begin, tmp_path):
    large = tmp_path / "task0" / "large.bin"
    large.parent.mkdir()
    large.write_bytes(bytes(100_000_000))  # a node's store has 80 MB
    run = begin(1, 2, grader={"private": json.dumps(["large.bin"])})
    run.wait_for_attempts(2)
    assert scores(run) == [(1, 1.0), (2, 2.0)]
    assert noted(run, 2, "was lost") == []


def test_over_a_slow_link_grades_are_late_and_the_same(begin):
    with slow_link("4mbit"):
        run = begin(1, 2)
        run.wait_for_attempts(2, 300)
    assert scores(run) == [(1, 1.0), (2, 2.0)]
    assert (noted(run, 2, "was lost"), run.events("alert")) == ([], [])


def test_what_a_node_raises_is_the_reason_of_the_attempt_that_it_cannot_grade(begin, cluster, tmp_path):
    run = begin(1, 2, grader={"ray.max_retries": 0, "args": held(1, tmp_path / "free")})
    place_of(run, 1)
    with cluster.spoiled_nodes():
        (tmp_path / "free").touch()
        record = run.wait_for_attempts(2)[1]
    assert record.verdict is Verdict.VOID
    lost = "the cluster lost its grade 1 times; the last time: PermissionError: "
    assert lost in record.reason
    assert record.reason.endswith("is not a folder of this user's alone")
