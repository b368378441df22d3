"""`coral cluster`: shows the cluster that a run's grades or agents run on: what it has, which runs use it, and what
waits why."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coral.agent_setup.nodes import bridge_of_agents, places_of
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import print_table
from coral.cluster import wire
from coral.config.load import load_frozen
from coral.errors import CoralError
from coral.grading.remote import GIGABYTE, bridge_of
from coral.views import format

SECONDS = 5.0  # for an answer of the process that speaks to the cluster
NODES_SECONDS = 60.0  # if that process asks each node first


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--nodes", action="store_true", help="ask each node what it has, which takes seconds (Ray)")
    parser.add_argument(
        "--json", action="store_true", help="for programs: executor, problem, nodes, capacity, grades, runs, agents"
    )
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    config = load_frozen(layout.task_file)
    if not config.grader.is_remote and not config.agents.are_remote:
        hint = "grader.executor and agents.executor in task.yaml: see docs/clusters.md"
        raise CoralError(f"{layout.root.name} has no cluster: its grades and agents run on this machine", hint)
    found: dict[str, Any] = {"executor": config.grader.executor, "run": layout.root.name, "problem": "", "agents": None}
    found |= {"nodes": [], "capacity": None, "grades": [], "runs": []}
    seconds = NODES_SECONDS if args.nodes else SECONDS
    if config.grader.is_remote:
        folder, message = bridge_of(layout.grader), {"describe": args.nodes, "resources": None}
        found |= _asked(folder, message, seconds) | {"capacity": wire.capacity(folder)}
    if config.agents.are_remote:
        message = {"describe": args.nodes, "places": places_of(config)}
        found["agents"] = _asked(bridge_of_agents(layout), message, seconds)
    if args.json:
        return print_json(found)
    if config.grader.is_remote:
        _print(found)
    if config.agents.are_remote:
        same = config.grader.executor == "ray" and config.grader.ray.address == config.agents.ray.address
        _print_agents(found["agents"], with_nodes=not same)
    return 0


def _asked(folder: Path, message: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send a question to the run's process that speaks to the cluster, and return the answer. `folder`: where that
    process has its socket. CoralError if there is no answer within `seconds`."""
    try:
        found = wire.ask(folder, message, seconds)
    except OSError as error:
        why = wire.trouble(folder) or f"the process of the run that speaks to it does not answer ({error})"
        raise CoralError(f"cannot ask the cluster: {why}", "if the run is stopped: coral resume") from error
    found.pop("refused", None)
    return found


def _print(found: Mapping[str, Any]) -> None:
    _print_nodes(found)
    if found["capacity"] is not None:
        print(f"the nodes have room for {format.plural(found['capacity'], 'grade')} at once")
    for grade in found["grades"]:
        print(f"#{grade['attempt']} {_where(grade)}")
    if not found["grades"]:
        print("no grade of this run is there")
    for other in found["runs"]:
        if other["run"] != found["run"]:
            print(f"{other['run']}: {format.plural(other['running'], 'grade')} on nodes, {other['waiting']} waiting")


def _print_agents(found: Mapping[str, Any], *, with_nodes: bool) -> None:
    """`with_nodes`: whether the nodes are not those of the grades, which were printed."""
    if with_nodes:
        _print_nodes(found)
    else:
        _print_problem(found)
    for launch in found["launches"]:
        print(f"{launch['agent']} {_where(launch)}")
    if not found["launches"]:
        print("no agent of this run is there")


def _where(work: Mapping[str, Any]) -> str:
    seconds = format.duration(work["seconds"])
    return f"on {work['node']} for {seconds}" if work["node"] else f"waits, for {seconds}: {work['waits']}"


def _print_problem(found: Mapping[str, Any]) -> None:
    if found["problem"]:
        print(f"the cluster cannot be used: {found['problem']}")


def _print_nodes(found: Mapping[str, Any]) -> None:
    _print_problem(found)
    if found["nodes"]:
        names = sorted(
            {name for node in found["nodes"] for name in node["total"] if not name.startswith(wire.CARD)}, key=_rank
        )
        asked = ("Python", "free disk", "problem*") if any("python" in node for node in found["nodes"]) else ()
        columns = ("node", *(f">{_title(name)} used" for name in names), *asked)
        print_table(columns, [[*_cells(node, names), *(_answers(node) if asked else ())] for node in found["nodes"]])
    for node in found["nodes"]:
        if node.get("excluded"):
            print(f"no grade begins for a while on {node['address']}: {node['excluded']}")


def _rank(name: str) -> tuple[int, str]:
    first = ("CPU", "GPU", "memory")
    return (first.index(name) if name in first else len(first), name)


def _title(name: str) -> str:
    return {"CPU": "CPUs", "GPU": "GPUs", "memory": "GB"}.get(name, name)


def _cells(node: Mapping[str, Any], names: list[str]) -> list[str]:
    return [node["address"], *(_used(name, node["free"].get(name, 0), node["total"].get(name, 0)) for name in names)]


def _used(name: str, free: float, total: float) -> str:
    if not total:
        return format.NONE
    unit = GIGABYTE if name == "memory" else 1
    return f"{(total - free) / unit:.3g} of {total / unit:.3g}"


def _answers(node: Mapping[str, Any]) -> list[str]:
    disk = f"{node['disk'] / GIGABYTE:.3g} GB" if "disk" in node else format.NONE
    return [node.get("python", format.NONE), disk, node.get("problem", "")]
