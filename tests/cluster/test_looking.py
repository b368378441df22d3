"""What `coral cluster` and `coral doctor` say of a real Ray cluster."""

import json
import platform
import time
from importlib.metadata import version

import pytest
from real_runs import tries, wait_until, write_task
from remote_grades import GRADE

pytestmark = pytest.mark.timeout(1200)  # it may be the first to start the cluster


def test_nodes_grades_and_what_waits_are_shown(cluster, start, coral):
    keys = {"executor": "ray", "ray.address": cluster.address, "ray.resources": "{num_cpus: 2}"}
    keys |= {"slots": 4, "ray.autoscaling": "true"}  # else the fourth would not be submitted
    overrides = (*(f"grader.{name}={value}" for name, value in keys.items()), "agents.count=4")
    run = start([*tries("slow"), "hang"], overrides=overrides, grade=GRADE)
    words = ("cluster", "--run", str(run.layout.root), "--json")

    def full(shown):
        return (node["address"] for node in shown["nodes"] if node["total"].get("CPU") and node["free"]["CPU"] == 0)

    def found():
        time.sleep(0.3)
        code, told, _ = coral(*words)
        shown = json.loads(told) if code == 0 else {"grades": []}  # the first grade may come before the bridge
        placed = [bool(grade["node"]) for grade in shown["grades"]] == [True, True, True, False]
        return shown if placed and sum(1 for _ in full(shown)) == 3 and shown["runs"][0]["running"] == 3 else None

    shown = wait_until(found, what="three grades on nodes and one that waits")
    nodes = {grade["node"] for grade in shown["grades"][:3]}
    assert nodes < {node["address"] for node in shown["nodes"]}
    assert set(full(shown)) == nodes
    assert shown["grades"][3]["waits"] == "it needs 2 CPUs; the node with the most has 0 free"
    assert shown["capacity"] == 3
    assert shown["runs"] == [{"run": run.layout.root.name, "running": 3, "waiting": 1}]
    code, told, _ = coral("cluster", "--run", str(run.layout.root), "--nodes")
    assert (code, told.count("2 of 2"), told.count(platform.python_version())) == (0, 3, 4)
    assert "waits, for " in told


@pytest.fixture
def says(cluster, coral, tmp_path):
    """What doctor finds of the cluster of a task."""

    def said(**keys):
        path = write_task(tmp_path / "task", ["hang"], grade=GRADE) / "task.yaml"
        ray = json.dumps({"address": cluster.address, **keys})
        path.write_text(path.read_text().replace("noise: 0", f"executor: ray\n  ray: {ray}"))
        found = json.loads(coral("doctor", str(path.parent), "--json")[1])
        return [(one["state"], one["text"]) for one in found["checks"] if one["name"] == "cluster"]

    return said


def test_doctor_asks_every_node(says):
    ((state, text),) = says()
    assert (state, text.startswith(f"4 nodes, Ray {version('ray')}, Python 3."), text.endswith(" GB free or more")) == (
        "well",
        True,
        True,
    )


def test_doctor_says_what_no_node_can_run(says):
    assert says(resources={"num_gpus": 8}) == [("wrong", "it runs no grade: it needs 8 GPUs; the largest node has 0")]


@pytest.mark.parametrize("token", ["0" * 48, "", None])
def test_doctor_says_that_a_token_is_refused(says, tmp_path, monkeypatch, token):
    if token is not None:
        (tmp_path / "token").write_text(token)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    ((state, text),) = says()
    assert (state, "token" in text.lower()) == ("wrong", True), text


@pytest.fixture
def says_of_agents(cluster, coral, tmp_path):
    """What doctor finds of the nodes for the agents of a task."""

    def said(**keys):
        path = write_task(tmp_path / "task", ["hang"], grade=GRADE) / "task.yaml"
        agents = {"runtime": "native", "ray": {"address": cluster.address}, "executor": "ray", **keys}
        before, _, after = path.read_text().partition("agents:\n")
        path.write_text(f"{before}agents: {json.dumps(agents)}\nrun:{after.partition('run:')[2]}")
        found = json.loads(coral("doctor", str(path.parent), "--json")[1])
        return [(one["state"], one["text"]) for one in found["checks"] if one["name"] == "agent nodes"]

    return said


def test_doctor_asks_the_nodes_for_agents(says_of_agents, cluster):
    ((state, text),) = says_of_agents()
    begins = f"{len(cluster.nodes())} nodes for agents, Ray {version('ray')}, Python 3."
    assert (state, text.startswith(begins), text.endswith(" GB free or more")) == ("well", True, True)


def test_doctor_says_what_the_nodes_for_agents_lack(says_of_agents, cluster):
    first, *others = says_of_agents(runtime="codex", options={"program": "no-such-codex"})
    assert first[0] == "well"
    assert [(state, text.partition(" ")[2]) for state, text in others] == len(cluster.nodes()) * [
        ("wrong", "has no no-such-codex")
    ]
    (refused,) = says_of_agents(assignments=[{"runtime": "native", "place": {"labels": {"kind": "large"}}}])
    assert refused == ("wrong", "none runs native: no node has the labels kind=large")
