"""Describes grades that run on a cluster (`grader.executor: ray` or `slurm`).

On this machine such a grade is a process of ours, `coral.cluster.remote_grade`, which has the grader run on a node. The
node runs what this machine would run, with its own folders in place of those here.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coral.cluster import wire
from coral.cluster.archive import CANDIDATE
from coral.cluster.keeper import BridgeKeeper
from coral.config.cluster import RayResources, RaySection, SlurmSection
from coral.config.model import GraderSection
from coral.grading.command import BEATS, RESULT, STDERR, STDOUT, GradeCommand, GradePlace
from coral.grading.parts import PACKAGE
from coral.processes import environment
from coral.processes.prestarted import Interpreter, python_order
from coral.processes.seal import UNSEALED

if TYPE_CHECKING:
    from coral.grading.kinds import GraderKind

_WAIT = "import sys; sys.path.append(sys.argv[1]); from coral.cluster.remote_grade import wait; wait(sys.argv[2])"
GIGABYTE = 10**9
SHARE = 0.001  # of the type of a card, which Ray counts as a resource of which each task needs that
_MARGIN = 30.0  # seconds, for messages on their way


@dataclass(frozen=True, slots=True)
class RemoteGrader:
    """A grader that runs on a cluster. `kind`: the kind of grader that the node runs."""

    kind: "GraderKind"
    python = ""  # that of the node

    def interpreter(self, venv: Path | None) -> Interpreter:  # noqa: ARG002 - as the protocol says
        # Without `site`, which takes longer than all that it imports.
        line = (sys.executable, "-P", "-S", "-u", "-c", _WAIT, str(PACKAGE.parent))
        return Interpreter(line, python_order, hands_over=True)

    def files(self, grader: GraderSection, folder: Path) -> Iterator[Path]:
        return self.kind.files(grader, folder)

    def command(self, grader: GraderSection, place: GradePlace) -> GradeCommand:
        here = self.kind.command(grader, replace(place, sandbox=UNSEALED, venv=None))
        return replace(
            here,
            interpreter=self.interpreter(None),
            argv=(str(place.folder / "spec.json"),),
            env={},
            cwd=place.folder,
            sandbox=UNSEALED,
            spec=_spec(grader, place, here),
            bridge=bridge_of(place.private),
            cluster=_cluster(grader),
            wait=longest_wait(grader),
        )


def longest_wait(grader: GraderSection) -> float:
    """Return the seconds that the local process of a grade may take beyond `grader.timeout`, which the node enforces.
    The process gives up before that by itself."""
    if not grader.is_remote:
        return 0.0
    section = _section(grader)
    silent = wire.SILENT_SECONDS + wire.AWAY_SECONDS
    return section.wait + section.max_retries * (grader.timeout + silent) + silent + _MARGIN


def grows(grader: GraderSection) -> bool:
    """Return whether the cluster of a grader adds nodes for grades that wait."""
    return grader.executor == "ray" and grader.ray.autoscaling


def bridge_of(private: Path) -> Path:
    """Return the folder of the bridge to the cluster: it lies beside the grader's files `private`."""
    return private.with_name("cluster")


def bridge_to(grader: GraderSection, private: Path) -> BridgeKeeper:
    """Start the bridge to the cluster of a grader whose files are in `private`. CoralError if a package is missing."""
    return BridgeKeeper(bridge_of(private), *_cluster(grader, discards=True))


def describe_cluster(grader: GraderSection, private: Path, seconds: float) -> dict[str, Any]:
    """Return what the cluster of a grader has, as `coral.cluster.bridge` describes it: with a `problem` where it cannot
    be used, and `refused` where it can never run one of its grades. `private`: an empty folder of the caller's."""
    keeper = bridge_to(grader, private)
    try:
        return keeper.answer({"describe": True, "resources": _resources(grader)}, seconds)
    finally:
        keeper.close()


def cluster_problem(grader: GraderSection, private: Path) -> str:
    """Return why the cluster of a grader whose files are in `private` cannot be used now; empty if it can, and for a
    grader of this machine."""
    return wire.trouble(bridge_of(private)) if grader.is_remote else ""


def cluster_capacity(grader: GraderSection, private: Path) -> int | None:
    """Return for how many grades the cluster has room; None if it is not known, or is not what limits them."""
    return wire.capacity(bridge_of(private)) if grader.executor == "ray" else None


def excluded_nodes(grader: GraderSection, private: Path) -> dict[str, str]:
    """Return the addresses of the nodes to which the bridge sends no grade for a while, each with the reason."""
    return wire.excluded(bridge_of(private)) if grader.executor == "ray" else {}


def _section(grader: GraderSection) -> RaySection | SlurmSection:
    return grader.slurm if grader.executor == "slurm" else grader.ray


def _cluster(grader: GraderSection, *, discards: bool = False) -> tuple[str, ...]:
    """The executor, and what its bridge is told: which cluster of its kind, what one of the grades needs of it, and
    whether nodes are to remove the files of the grades when the bridge ends."""
    if grader.executor == "slurm":
        return grader.executor, grader.slurm.cluster
    needs = {"resources": resources_of(grader.ray.resources), "grows": grader.ray.autoscaling, "discards": discards}
    return grader.executor, grader.ray.address, json.dumps(needs)


def _spec(grader: GraderSection, place: GradePlace, here: GradeCommand) -> dict[str, Any]:
    """Return the spec of `coral.cluster.remote_grade`. Its `order` is what the node gets; `places` in that are the
    folders of this machine that the node replaces by its own."""
    made = grader.ray.environment if grader.executor == "ray" else {}
    variables = made.get("env_vars")
    given = variables if isinstance(variables, dict) else {}
    order = {
        "attempt": place.attempt,
        "spec": here.spec,
        "argv": here.argv,
        "cwd": str(here.cwd),
        "env": {name: value for name, value in here.env.items() if name != "CORAL_DEADLINE"},
        "kept": sorted(environment.GRADER_NAMES.union(given)),
        "prefixes": environment.GRADER_PREFIXES,
        "environment": made,
        "timeout": grader.timeout,
        "streams": (STDOUT, STDERR),
        "beats": BEATS,
        "result": RESULT,
        "places": {CANDIDATE: str(place.workspace), "private": str(place.private), "": str(place.folder)},
    }
    return {
        "order": order,
        "folder": str(place.folder),
        "bridge": str(bridge_of(place.private)),
        "passed": grader.pass_env,
        "resources": _resources(grader),
        "max_retries": _section(grader).max_retries,
        "wait": _section(grader).wait,
        "impatient": place.attempt == 0,  # the seed, when a run begins or a task is checked
        "grows": grows(grader),
    }


def _resources(grader: GraderSection) -> dict[str, Any]:
    return jobs_of(grader.slurm) if grader.executor == "slurm" else resources_of(grader.ray.resources)


def resources_of(asked: RayResources) -> dict[str, float]:
    """Return resources by Ray's names for them."""
    memory = {} if asked.memory is None else {"memory": asked.memory * GIGABYTE}
    cards = {f"{wire.CARD}{asked.accelerator_type}": SHARE} if asked.accelerator_type else {}
    return {"CPU": asked.num_cpus, "GPU": asked.num_gpus, **cards, **memory, **asked.custom}


def jobs_of(section: SlurmSection) -> dict[str, Any]:
    """Return what a grade's job asks for by submitit's names."""
    asked: dict[str, Any] = {"cpus_per_task": section.cpus}
    if section.gpus:
        asked["gpus_per_node"] = section.gpus
    if section.memory is not None:
        asked["mem_gb"] = section.memory
    if section.partition:
        asked["slurm_partition"] = section.partition
    if section.options:
        asked["slurm_additional_parameters"] = dict(section.options)
    return asked
