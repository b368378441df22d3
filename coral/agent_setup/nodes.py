"""The cluster on which agents of a task run: its bridge, and what its nodes must have for them."""

import json
from pathlib import Path
from typing import Any

from coral.agent_setup.roster import assignments_of, place_of
from coral.cluster.keeper import BridgeKeeper
from coral.config.load import Config
from coral.config.model import Assignment
from coral.grading.remote import resources_of
from coral.runtimes.agent import AgentProgram
from coral.runtimes.programs import on_path
from coral.runtimes.registry import find
from workspace.layout import Layout


def bridge_of_agents(layout: Layout) -> Path:
    """Return the folder of the bridge to the cluster that the agents of a run are on."""
    return layout.private / "agents"


def keeper_of(folder: Path, config: Config) -> BridgeKeeper:
    """Start the bridge of a task's agents in a folder. CoralError where a package is missing."""
    agents = config.agents
    places = [place_of(agents, part) for part in (agents, *agents.assignments)]
    needs = [resources_of(place) for place in places if place is not None]
    return BridgeKeeper(folder, "ray", agents.ray.address, json.dumps(needs), bridge="ray_launch")


def places_of(config: Config) -> list[dict[str, Any]]:
    """Return, for each assignment whose agents run on a cluster, its `runtime`, and as `coral.cluster.launch_bridge`
    takes them what its agents need of a node and the `programs` that must be there."""
    found = []
    for part in assignments_of(config):
        if (place := place_of(config.agents, part)) is not None:
            needs = {"resources": resources_of(place), "labels": dict(place.labels)}
            found.append({"runtime": part.runtime, **needs, "programs": [*_programs(part), "git"]})
    return found


def _programs(part: Assignment) -> list[str]:
    runtime = find(part.runtime, part.options)
    if not isinstance(runtime, AgentProgram):
        return []
    here = on_path(runtime.program)
    return [str(runtime.executable(here)[0]) if here else runtime.program]


def described_agents(config: Config, folder: Path, seconds: float) -> dict[str, Any]:
    """Return what the cluster of a task's agents has, as `coral.cluster.launch_bridge` describes it for `places_of`;
    with a `problem` where it cannot be used. `folder`: an empty one of the caller's."""
    keeper = keeper_of(folder, config)
    try:
        return keeper.answer({"describe": True, "places": places_of(config)}, seconds)
    finally:
        keeper.close()
