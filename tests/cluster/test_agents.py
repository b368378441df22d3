"""Agents on the nodes of a real cluster: as on this machine, whoever dies."""

import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from ray_cluster import pids_with
from real_runs import tries, wait_until

from attempts.files import parse_object, read_bytes

pytestmark = pytest.mark.timeout(600)  # the first one starts the cluster


@pytest.fixture
def begin(cluster, start):
    """A run of scripted agents that are on nodes of the cluster."""

    def begun(script, *, count=1, overrides=(), **task):
        placed = ("agents.executor=ray", f"agents.ray.address={cluster.address}", f"agents.count={count}")
        return start(script, overrides=(*placed, *overrides), **task)

    return begun


def on_nodes(run) -> list[int]:
    """The processes of the run's agents on all nodes."""
    return pids_with(b"CORAL_LAUNCH=" + f"{run.layout.root.name}.{run.layout.root.stat().st_ino}@node/".encode())


def programs(run) -> list[int]:
    """The agents' own programs, without the commands of Coral that they run: an agent goes on when one fails."""
    there = set(on_nodes(run))
    return [pid for pid, words in commands() if pid in there and b"coral.runtimes.scripted.program" in words]


def environment_on_node(run) -> list[bytes]:
    """The variables of a process of an agent; none between two launches."""
    for pid in on_nodes(run):
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def bridges(run) -> list[int]:
    folder = str(run.layout.private / "agents").encode()
    return [pid for pid, words in commands() if folder in words and b"_bridge" in b"".join(words)]


def locals_of(run) -> list[int]:
    """The processes of the run's launches on this machine."""
    folder = str(run.layout.private / "agents").encode()
    return [pid for pid, words in commands() if words[-2:-1] and words[-2].startswith(folder + b"/agent-")]


def commands():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(path.parent.name), path.read_bytes().split(b"\0")
        except OSError:
            continue


def wait_for_output(run, agent: str, launch: int) -> None:
    output = run.layout.output(agent, launch)

    def has_output() -> bool:
        ended = [one for one in run.events("exited") if (one["agent"], one["launch"]) == (agent, launch)]
        written = output.exists() and output.read_bytes() != b""
        assert written or not ended, f"no output before its end: {ended}"
        return written

    wait_until(has_output, what=f"the output of {agent}, launch {launch}")


def node_of(run, agent: str) -> str:
    return str(parse_object(read_bytes(run.layout.private / "agents" / f"{agent}.node.json"))["node"])


def test_an_agent_submits_is_graded_interrupted_and_resumed_in_its_session(begin, cluster, coral):
    run = begin([*tries(1, 2), "hang"])
    assert [one.score for one in run.wait_for_attempts(2)] == [1.0, 2.0]
    wait_for_output(run, "agent-1", 3)
    shown = json.loads(coral("cluster", "--run", str(run.layout.root), "--nodes", "--json")[1])["agents"]
    (launch,) = shown["launches"]
    able = {node["address"] for node in shown["nodes"] if node["runs_agents"] and not node["missing"]}
    assert (launch["agent"], launch["launch"], launch["waits"]) == ("agent-1", 3, "")
    assert len(able) == len(cluster.nodes())
    assert launch["node"] in able
    assert "\nagent-1 on 127.0.0." in coral("cluster", "--run", str(run.layout.root))[1]
    run.stop()
    assert len({prompt["session"] for prompt in run.prompts("agent-1")}) == 1
    assert len(run.received("agent-1", "reflect")) == 2
    assert [event["ending"] for event in run.events("exited")] == 3 * ["interrupted"]
    assert on_nodes(run) == []


def test_three_agents_over_the_nodes_share_what_they_write(begin):
    script = """
cat >/dev/null
test -e .shared/notes/$CORAL_AGENT.md || echo "of $CORAL_AGENT" >.shared/notes/$CORAL_AGENT.md
until test $(cat .shared/notes/*.md | sort -u | wc -l) = 3; do sleep 0.1; done
echo ${CORAL_AGENT#agent-} >x.txt
coral eval -m "$CORAL_AGENT"
exec sleep 600
"""
    run = begin(script, count=3, overrides=("agents.place={num_cpus: 2}",))
    assert sorted(one.score for one in run.wait_for_attempts(3)) == [1.0, 2.0, 3.0]
    assert len({node_of(run, f"agent-{number}") for number in (1, 2, 3)}) == 3
    assert len(list((run.layout.shared / "notes").glob("agent-*.md"))) == 3
    for number in (1, 2, 3):
        prompt = run.layout.prompt(f"agent-{number}", 2)
        wait_until(lambda prompt=prompt: prompt.exists() and "reflect" in prompt.read_text(), what="the heartbeat")
    run.stop()
    assert on_nodes(run) == []


def test_an_agent_stays_on_its_node_until_that_is_full(begin, cluster):
    run = begin([*tries(1, 2, 3), "hang"], overrides=("agents.place={num_cpus: 2}",))
    nodes = set()
    for launch in (2, 3, 4):  # each begins while its node frees what the one before had
        wait_for_output(run, "agent-1", launch)
        nodes.add(node_of(run, "agent-1"))
    (before,) = nodes
    run.stop()
    with cluster.occupied(before):
        run.supervise()
        wait_for_output(run, "agent-1", 5)
        assert node_of(run, "agent-1") != before
    run.stop()


def test_an_agent_whose_node_dies_begins_again_elsewhere_from_its_last_attempt(begin, cluster):
    script = """
cat >/dev/null
echo "begins with $(cat x.txt)"
test $(cat x.txt) = 5 && exec sleep 600
echo 5 >x.txt
coral eval -m five
exec sleep 600
"""
    run = begin(script)
    run.wait_for_attempts(1)
    wait_for_output(run, "agent-1", 2)
    before, address = node_of(run, "agent-1"), cluster.address_of(node_of(run, "agent-1"))
    cluster.kill_node(address)
    cluster.add_node()
    wait_for_output(run, "agent-1", 3)
    assert run.layout.output("agent-1", 3).read_text() == "begins with 5\n"
    assert node_of(run, "agent-1") != before
    assert [event["ending"] for event in run.events("exited")] == ["interrupted", "lost"]
    assert "its node was lost" in run.layout.errors("agent-1", 2).read_text()
    assert len(run.attempts()) == 1


@pytest.mark.parametrize("who", ["bridge", "supervisor", "both"])
def test_whoever_is_killed_the_launch_goes_on_and_nothing_is_doubled(begin, who):
    run = begin([{"sleep": 3}, *tries(1, 2), "hang"])
    wait_for_output(run, "agent-1", 1)
    if who != "supervisor":
        for pid in bridges(run):
            os.kill(pid, signal.SIGKILL)
    if who != "bridge":
        run.kill()
        run.supervise()
    assert [(one.number, one.score) for one in run.wait_for_attempts(2)] == [(1, 1.0), (2, 2.0)]
    wait_for_output(run, "agent-1", 3)
    run.stop()
    assert [event["launch"] for event in run.events("exited")] == [1, 2, 3]
    assert [prompt["launch"] for prompt in run.prompts("agent-1")] == [1, 2, 3]
    assert on_nodes(run) == []


def test_an_agent_that_is_deaf_is_ended_on_its_node(begin):
    run = begin("trap '' INT TERM; cat >/dev/null; echo on; (setsid sleep 600 &); while :; do sleep 1; done")
    wait_for_output(run, "agent-1", 1)
    assert on_nodes(run) != []
    run.stop()
    wait_until(lambda: on_nodes(run) == [], what="the end of all on the node")
    wait_until(lambda: bridges(run) == [], what="the end of the bridge")


def test_an_agent_is_placed_by_labels_and_what_no_node_has_is_named(begin, cluster):
    labelled = cluster.add_node("--labels=kind=quick")
    run = begin(["hang"], overrides=("agents.place={labels: {kind: quick}}",))
    wait_for_output(run, "agent-1", 1)
    assert cluster.address_of(node_of(run, "agent-1")) == labelled
    other = begin(["hang"], overrides=("agents.place={labels: {kind: slow}}", "agents.ray.wait=3"))
    words = "cannot run on the cluster: no node has the labels kind=slow"
    wait_until(lambda: any(words in crash["text"] for crash in other.events("crashed")), what="the failure")
    run.stop()
    cluster.remove_node(labelled)


def test_without_a_head_agents_go_on(begin, cluster):
    script = """
cat >/dev/null
echo begun
until test -e .shared/notes/now.md; do sleep 0.1; done
echo 1 >x.txt; coral eval --tune -m one
echo 2 >x.txt; coral eval --tune -m two
exec sleep 600
"""
    run = begin(script)
    wait_for_output(run, "agent-1", 1)
    with cluster.without_head():
        (run.layout.shared / "notes" / "now.md").write_text("now")
        assert [one.score for one in run.wait_for_attempts(2)] == [1.0, 2.0]
    run.stop()
    assert [event["launch"] for event in run.events("exited")] == [1]
    assert on_nodes(run) == []


VALUES = range(1, 6)


def test_of_agents_that_are_killed_again_and_again_each_submission_is_one_attempt(begin, cluster):
    shares = ("agents.place={num_cpus: 0.5}", "run.breaker_crashes=1000", "run.backoff_max=2")
    run = begin([*tries(*VALUES), "hang"], count=4, overrides=shares)
    dice, killed = random.Random(17), []
    while len(run.attempts()) < 4 * len(VALUES):
        kinds = {"host": cluster.hosts(), "process": locals_of(run), "bridge": bridges(run), "program": programs(run)}
        kind = dice.choice([kind for kind, pids in kinds.items() if pids] or [""])
        if kind and len(killed) < 12:
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(kinds[kind]), signal.SIGKILL)
                killed.append(kind)
        time.sleep(dice.uniform(1, 4))
    run.stop()
    made = sorted((one.agent, one.score) for one in run.attempts())
    agents = [f"agent-{number}" for number in range(1, 5)]
    assert made == sorted((agent, float(value)) for agent in agents for value in VALUES), killed
    assert [one.number for one in run.attempts()] == list(range(1, 4 * len(VALUES) + 1))
    wait_until(lambda: on_nodes(run) == [], what="the end of all on the nodes")


def test_a_native_agent_and_its_grades_are_on_the_cluster_and_nothing_leads_it_there(begin, cluster):
    grades = ("grader.executor=ray", f"grader.ray.address={cluster.address}", "workspace.seal=best")
    run = begin(["hang"], overrides=(*grades, "agents.runtime=native", "agents.options={}"))
    (first, *_) = run.wait_for_attempts(1)
    assert (first.score is not None, first.seal) == (True, "none")
    environment = wait_until(lambda: environment_on_node(run), what="a process on the node")
    assert [part for part in environment if part.startswith(b"RAY_")] == []
    run.stop()
    assert on_nodes(run) == []
    cluster.wait_until_idle()
