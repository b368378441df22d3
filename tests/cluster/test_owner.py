"""The owner of grades on a real cluster: what becomes of a grade that cannot begin."""

import os
import subprocess
import sys
import tempfile

import pytest

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster

SCRIPT = """
import sys
import ray
from coral.cluster import guard_protocol, node, owner, spare_guard

for module in (guard_protocol, node, owner, spare_guard):
    ray.cloudpickle.register_pickle_by_value(module)
ray.init(sys.argv[1], namespace="test", log_to_driver=False, logging_level="ERROR")
made = ray.remote(owner.Owner).options(num_cpus=0, max_concurrency=4).remote("run", 600.0)

def call(method, *arguments):
    return ray.get(getattr(made, method).remote(*arguments))

def news(key):
    _, (event,) = call("news", {key: (0, True)}, 30.0)[key]
    return event.get("lost") or event["refused"]

def submit(key, options={}):
    driver = ray.get_runtime_context().get_job_id()
    return call("submit", key, {"archive": "sha", "base": "earlier"}, b"", options, driver)

print(submit("a"), call("has_grade", "a"), news("a"))
for sha in ("sha", "earlier", "sha"):
    call("keep", sha, b"")
print(submit("a", {"num_cpus": 0.00001}), call("has_grade", "a"), news("a"))
unreadable = {"runtime_env": {"pip": "x" * 300}}  # a name of a file that no disk can have: OSError
print(submit("c", unreadable), call("has_grade", "c"), news("c"))
call("drop", "earlier")
print(submit("a"), submit("b"))
call("cancel", "a")
print(call("has_grade", "a"))
"""

FULL = """
import sys
import ray
from coral.cluster import guard_protocol, node, owner, spare_guard

for module in (guard_protocol, node, owner, spare_guard):
    ray.cloudpickle.register_pickle_by_value(module)
ray.init(
    "local", _temp_dir=sys.argv[1], _node_ip_address="127.0.0.1", num_cpus=1, object_store_memory=80 << 20,
    include_dashboard=False, log_to_driver=False, logging_level="ERROR",
    _system_config={"local_fs_capacity_threshold": 0.0001},
)
made = ray.remote(owner.Owner).options(num_cpus=0, max_concurrency=4).remote("run", 600.0)

def call(method, *arguments):
    return ray.get(getattr(made, method).remote(*arguments))

call("keep", "sha", b"")
driver = ray.get_runtime_context().get_job_id()
order = {"archive": "sha", "base": ""}
try:
    call("submit", "a", order, b"x" * (50 << 20), {}, driver)  # it is in the store, and a second copy has no room
except ray.exceptions.RayError as error:
    print(type(error.cause).__name__, call("has_grade", "a"))
print(call("submit", "a", order, b"x", {}, driver), call("has_grade", "a"))
"""


def test_a_grade_for_which_the_store_has_no_room_may_be_submitted_again() -> None:
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # a short path, for sockets
        line = [sys.executable, "-P", "-c", FULL, folder]
        env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}  # of another cluster
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "OutOfDiskError False\n[] True\n"


def test_a_grade_that_cannot_begin_is_lost_and_may_be_submitted_again(cluster) -> None:
    line = [sys.executable, "-P", "-c", SCRIPT, cluster.address]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    unknown, refused, unreadable, dropped, forgotten = done.stdout.splitlines()
    assert unknown == "['sha', 'earlier'] False the process that owned it ended"
    assert refused.startswith("[] True Ray refuses such a grade: ")
    assert unreadable.startswith("[] True Ray refuses such a grade: [Errno ")
    assert dropped == "[] ['earlier']"
    assert forgotten == "False"
