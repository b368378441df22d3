"""`coral cluster`: shows the cluster that a run's grades run on: what it has, which runs use it, and what waits why."""

import argparse
from collections.abc import Mapping
from typing import Any

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
        "--json", action="store_true", help="for programs: executor, problem, nodes, capacity, grades, runs"
    )
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    grader = load_frozen(layout.task_file).grader
    if not grader.is_remote:
        hint = "grader.executor in task.yaml: see docs/clusters.md"
        raise CoralError(f"{layout.root.name} has no cluster: its grades run on this machine", hint)
    try:
        message = {"describe": args.nodes, "resources": None}
        found = wire.ask(bridge_of(layout.grader), message, NODES_SECONDS if args.nodes else SECONDS)
    except OSError as error:
        problem = wire.trouble(bridge_of(layout.grader))
        why = problem or f"the process of the run that speaks to it does not answer ({error})"
        raise CoralError(f"cannot ask the cluster: {why}", "if the run is stopped: coral resume") from error
    found = {"executor": grader.executor, "run": layout.root.name, "nodes": [], "grades": [], "runs": []} | found
    found["capacity"] = wire.capacity(bridge_of(layout.grader))
    found.pop("refused", None)
    if args.json:
        return print_json(found)
    _print(found)
    return 0


def _print(found: Mapping[str, Any]) -> None:
    if found["problem"]:
        print(f"the cluster cannot be used: {found['problem']}")
    if found["nodes"]:
        names = sorted(
            {name for node in found["nodes"] for name in node["total"] if not name.startswith(wire.CARD)}, key=_rank
        )
        asked = ("Python", "free disk", "problem*") if any("python" in node for node in found["nodes"]) else ()
        columns = ("node", *(f">{_title(name)} used" for name in names), *asked)
        print_table(columns, [[*_cells(node, names), *(_answers(node) if asked else ())] for node in found["nodes"]])
    if found["capacity"] is not None:
        print(f"the nodes have room for {format.plural(found['capacity'], 'grade')} at once")
    for grade in found["grades"]:
        seconds = format.duration(grade["seconds"])
        where = f"on {grade['node']} for {seconds}" if grade["node"] else f"waits, for {seconds}: {grade['waits']}"
        print(f"#{grade['attempt']} {where}")
    if not found["grades"]:
        print("no grade of this run is there")
    for other in found["runs"]:
        if other["run"] != found["run"]:
            print(f"{other['run']}: {format.plural(other['running'], 'grade')} on nodes, {other['waiting']} waiting")


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
