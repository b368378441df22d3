"""The part of `coral doctor` about clusters: asks the nodes that a task's grades or agents would run on, and says what
is wrong there.
"""

import platform
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coral import __version__
from coral.agent_setup.nodes import described_agents, places_of
from coral.config.load import Config
from coral.grading.remote import describe_cluster, grows
from coral.preflight.check import Check, Health
from coral.views.format import plural

CLUSTER_SECONDS = 60.0  # for a cluster and all its nodes to answer
FREE_BYTES = 2 << 30  # bytes: a run keeps every commit, every log, and a clone for each agent
LEFT_BYTES = 1 << 30  # of ended runs, from which on they are noted
CLUSTER, AGENT_NODES = "cluster", "agent nodes"
CLUSTER_HELP = "see docs/clusters.md"
PORTS_HELP = "open it in the firewalls between them: see The ports of nodes in docs/clusters.md"


def grading_nodes(config: Config) -> list[Check]:
    """Ask the cluster of the task, as a run would, and each of its nodes."""
    with tempfile.TemporaryDirectory(prefix="coral-doctor-") as folder:
        found = describe_cluster(config.grader, Path(folder, "private"), CLUSTER_SECONDS)
    if problem := found["problem"]:
        return [Check(CLUSTER, Health.WRONG, problem, CLUSTER_HELP)]
    if refused := found["refused"]:
        state, when = (Health.NOTE, ", until it adds a node") if grows(config.grader) else (Health.WRONG, "")
        return [Check(CLUSTER, state, f"it runs no grade{when}: {refused}", "see grader in task.yaml")]
    nodes = found["nodes"]
    text = plural(len(nodes), "node") if nodes else "it answers"
    has = _what_all_have(nodes)
    well = Check(CLUSTER, Health.WELL, f"{text}{has}")
    return [well, *(check for node in nodes for check in _node(CLUSTER, node, "its grades are unpacked there"))]


def agent_nodes(config: Config) -> list[Check]:
    """Ask the cluster on which agents run, and each of its nodes that could run one."""
    with tempfile.TemporaryDirectory(prefix="coral-doctor-") as folder:
        found = described_agents(config, Path(folder, "agents"), CLUSTER_SECONDS)
    if problem := found["problem"]:
        return [Check(AGENT_NODES, Health.WRONG, problem, CLUSTER_HELP)]
    refused = [(place["runtime"], why) for place, why in zip(places_of(config), found["refused"], strict=True) if why]
    checks = [
        Check(AGENT_NODES, Health.WRONG, f"none runs {name}: {why}", "see agents in task.yaml") for name, why in refused
    ]
    nodes = [node for node in found["nodes"] if node.get("runs_agents", True)]
    text = f"{plural(len(nodes), 'node')} for agents{_what_all_have(nodes)}"
    well = [Check(AGENT_NODES, Health.WELL, text)] if nodes else []
    return [*well, *checks, *(check for node in nodes for check in _agent_node(node))]


def _what_all_have(nodes: Iterable[Mapping[str, Any]]) -> str:
    """Return the versions of all nodes that have answered, what they keep together, and the least free disk."""
    able = [node for node in nodes if "problem" not in node]
    if not able:
        return ""
    pythons, rays = sorted({node["python"] for node in able}), sorted({node["ray"] for node in able})
    kept = sum(part["bytes"] for node in able for part in node["kept"])
    free = min(node["disk"] for node in able)
    return (
        f", Ray {' and '.join(rays)}, Python {' and '.join(pythons)}, {_gigabytes(kept)} kept for later, "
        f"{_gigabytes(free)} free or more"
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _agent_node(node: Mapping[str, Any]) -> Iterator[Check]:
    where = node["address"]
    if "problem" not in node and node["coral"] != __version__:
        has = f"Coral {node['coral']}, and this machine has {__version__}" if node["coral"] else "no Coral"
        yield Check(AGENT_NODES, Health.WRONG, f"{where} has {has}", f"install coral-fleet {__version__} there")
    for program in node.get("missing", ()):
        advice = "install it there, or say by labels which nodes have it"
        yield Check(AGENT_NODES, Health.WRONG, f"{where} has no {program}", advice)
    yield from _node(AGENT_NODES, node, "its agents work there")


def _node(name: str, node: Mapping[str, Any], use: str) -> Iterator[Check]:
    """Yield a check for each thing that is wrong with a node. `name`: the name of these checks; `use`: what the disk of
    the node is used for, in words."""
    where = node["address"]
    for port in node.get("closed_here", ()):
        yield Check(name, Health.NOTE, f"{where}: this machine cannot reach {port}", PORTS_HELP)
    if "problem" in node:
        is_unknown = " is unknown" if node.get("unknown") else ""
        advice = "see whether it still runs, and `coral doctor` again" if is_unknown else CLUSTER_HELP
        yield Check(name, Health.NOTE, f"{where}{is_unknown}: {node['problem']}", advice)
    else:
        yield from _versions(name, node)
        yield from _tokens(name, node)
        for port in node["closed"]:
            yield Check(name, Health.NOTE, f"{where} cannot reach {port} of this machine", PORTS_HELP)
        if node["disk"] < FREE_BYTES:
            what = f"{where} has {_gigabytes(node['disk'])} free in {node['folder']}"
            yield Check(name, Health.NOTE, what, f"{use}: make room")
        for part in node["kept"]:
            yield from _kept(name, where, part)


def _versions(name: str, node: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the versions of a node that differ from this machine's: Ray may admit them, and fail later."""
    here = {"Python": platform.python_version()}
    with suppress(PackageNotFoundError):  # it is imported from a place of its own
        here["Ray"] = version("ray")
    for what, own in here.items():
        if (there := node[what.lower()]) != own:
            text = f"{node['address']} has {what} {there}, and this machine has {own}"
            yield Check(name, Health.NOTE, text, f"install {what} {own} there, or {there} here")


def _tokens(name: str, node: Mapping[str, Any]) -> Iterator[Check]:
    where = node["address"]
    if not node["asks_token"]:
        advice = "set RAY_AUTH_MODE=token for all nodes: see examples/clusters/README.md"
        yield Check(name, Health.NOTE, f"{where} asks for no token: who reaches its ports runs any code there", advice)
    if path := node["open_token"]:
        yield Check(name, Health.NOTE, f"{where}: others can read the token in {path}", f"`chmod 600 {path}` there")


def _kept(name: str, where: str, part: Mapping[str, Any]) -> Iterator[Check]:
    """Yield what is wrong with what a node keeps for later grades or launches."""
    for path in part["unread"]:
        advice = "remove it there: what is needed is sent again. If that fails too, see to its disk"
        yield Check(name, Health.NOTE, f"{where} cannot read {path}", advice)
    if part["unused"] >= LEFT_BYTES:
        least = " or more" if part["partial"] else ""
        text = f"{where} keeps {_gigabytes(part['unused'])}{least} in {part['folder']} that no run uses now"
        advice = "it goes by itself some days after its last use; remove it there if you need the room now"
        yield Check(name, Health.NOTE, text, advice)
