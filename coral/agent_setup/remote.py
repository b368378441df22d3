"""Describes launches that run on a node of a Ray cluster (`agents.executor: ray`, or `place` of an assignment).

On this machine such a launch is a process of ours, `coral.cluster.remote_launch`, which has the agent's program run on
a node, in a mirror of what the agent may see of the run.
"""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import coral
from attempts.files import parse_object, read_bytes, write_json
from coral.agent_setup.nodes import bridge_of_agents, keeper_of
from coral.agent_setup.roster import place_of
from coral.cluster import wire
from coral.cluster.keeper import BridgeKeeper
from coral.config.cluster import PlaceSection
from coral.config.load import Config
from coral.errors import CoralError
from coral.grading.remote import resources_of
from coral.processes.launch_tags import name_of_run
from coral.processes.process import Program
from coral.supervisor.context import RunContext
from workspace.knowledge import FOLDERS
from workspace.layout import Layout

_CALL = "import sys; from coral.cluster.remote_launch import main; main(sys.argv[1])"


def is_placed(run_context: RunContext, agent: str) -> bool:
    """Return whether an agent runs on a cluster."""
    return place_of(run_context.config.agents, run_context.roster.assignment(agent)) is not None


def bridge_for(layout: Layout, config: Config) -> BridgeKeeper | None:
    """Start the bridge to the cluster that the agents of a run need; None if they need none. CoralError where a package
    is missing."""
    return keeper_of(bridge_of_agents(layout), config) if config.agents.are_remote else None


def agents_cluster_problem(run_context: RunContext) -> str:
    """Return why the cluster that agents run on cannot be used now; empty if it can, or if they run on this machine."""
    return wire.trouble(bridge_of_agents(run_context.layout)) if run_context.config.agents.are_remote else ""


def check_seal(config: Config) -> None:
    """Raise CoralError if the task asks for sealed agents and has some that run on a cluster."""
    if config.agents.are_remote and config.workspace.seal not in ("best", "none"):
        raise CoralError(
            f"cannot seal agents on a cluster, as workspace.seal: {config.workspace.seal} asks",
            "write workspace.seal: best, which seals those of this machine if it can, or run all agents here",
        )


def on_node(run_context: RunContext, agent: str, launch: int, program: Program, place: PlaceSection) -> Program:
    """Return the program of this machine that has an agent's `program` run on a node."""
    layout, folder = run_context.layout, bridge_of_agents(run_context.layout)
    spec = folder / f"{agent}.json"
    _lost(layout, agent).unlink(missing_ok=True)
    write_json(spec, _spec(run_context, agent, launch, program, place), durable=False, mode=0o600)
    return replace(program, argv=(sys.executable, "-P", "-u", "-c", _CALL, str(spec)), cwd=layout.root)


def was_lost(layout: Layout, agent: str, launch: int) -> bool:
    """Return whether the node of a launch that has ended was lost, by the word of its process of this machine."""
    with contextlib.suppress(OSError):
        return read_bytes(_lost(layout, agent)) == str(launch).encode()
    return False


def forget_mirror(layout: Layout, agent: str) -> None:
    """Let the agent's next launch on a node get its files from the run's folder, because they have changed there:
    whatever the launch before has left on the node is older."""
    _kept(layout, agent).unlink(missing_ok=True)


def _lost(layout: Layout, agent: str) -> Path:
    return bridge_of_agents(layout) / f"{agent}.lost"


def _kept(layout: Layout, agent: str) -> Path:
    return bridge_of_agents(layout) / f"{agent}.node.json"


def _spec(run_context: RunContext, agent: str, launch: int, program: Program, place: PlaceSection) -> dict[str, Any]:
    layout, config, folder = run_context.layout, run_context.config, bridge_of_agents(run_context.layout)
    run, kept = name_of_run(layout), _kept(layout, agent)
    before = _launch_before(kept)
    return {
        "launch": f"{agent}/{launch}",
        "number": launch,
        "before": before.get("launch", 0),
        "tag": f"{run}@node/{agent}/{launch}",  # not that of processes of this machine
        "run": run,
        "agent": agent,
        "root": str(layout.root),
        "python": sys.executable,
        "home": str(Path.home()),
        "version": coral.__version__,
        "argv": list(program.argv),
        "cwd": _below(layout, program.cwd),
        "stdin": _below(layout, program.stdin),
        "stdout": _below(layout, program.stdout),
        "stderr": _below(layout, program.stderr),
        "beats": str(layout.pulses(agent)),
        "areas": areas_of(layout, agent, share=config.workspace.share),
        "bridge": str(folder),
        "aside": str(folder / f"{agent}.aside"),
        "kept": str(kept),
        "lost": str(_lost(layout, agent)),
        "prefers": before.get("node", ""),
        "resources": resources_of(place),
        "labels": dict(place.labels),
        "wait": config.agents.ray.wait,
    }


def areas_of(layout: Layout, agent: str, *, share: bool) -> dict[str, Any]:
    """Return what an agent on a node has of the run, as paths below the run's folder: `own` comes back from the node;
    `given` goes there, of `growing` and `flat` what is added, see `coral.cluster.mirror.Growing`; `up` are folders in
    which the agent leaves files, each with the folder in which it is answered; `pulses` is the file of its beats."""

    def below(*paths: Path) -> list[str]:
        return [_below(layout, path) for path in paths]

    inbox, replies = below(layout.attempts / "inbox" / agent, layout.attempts / "replies" / agent)
    requests, answers = below(layout.requests_of(agent), layout.replies_to(agent))
    return {
        "run": layout.root.name,
        "own": below(layout.clone(agent), layout.state(agent)),
        "knowledge": _below(layout, layout.shared_of(agent, share)),
        "given": below(layout.heartbeats, layout.status),
        "growing": below(layout.hub / "objects", layout.hub / "refs" / "attempts", layout.root / "grades"),
        "flat": below(layout.attempts),
        "up": {inbox: replies, requests: answers},
        "answers": [replies, answers],
        "logs": below(layout.logs(agent)),
        "pulses": _below(layout, layout.pulses(agent)),
        "folders": below(
            *(layout.heartbeats, layout.clone(agent), layout.state(agent), layout.logs(agent)),
            *(layout.shared_of(agent, share) / name for name in FOLDERS),
        ),
    }


def _below(layout: Layout, path: Path) -> str:
    return str(path.relative_to(layout.root))


def _launch_before(kept: Path) -> dict[str, Any]:
    """Return the number and the node of the agent's last launch that has begun on a node; nothing if there is none."""
    try:
        return parse_object(read_bytes(kept))
    except (OSError, ValueError):
        return {}
