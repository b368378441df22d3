"""The actor of a launch on its node. Ray sends this module there by value, so that a node without Coral can say so."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from coral.cluster.node_report import report


def describe_node(ports: Mapping[str, str], programs: list[str] | None) -> dict[str, Any]:
    """Return what this node has for agents: the version of Coral (empty if it has none), which of the `programs` are
    `missing`, and what `coral.cluster.node_report` tells. `programs`: what agents need here; None if no agent can run
    on this node."""
    try:
        from coral import __version__ as version
    except ImportError:
        version = ""
    return {
        **report(ports),
        "coral": version,
        "runs_agents": programs is not None,
        "missing": [Path(program).name for program in programs or () if not _is_there(program)],
    }


def _is_there(program: str) -> bool:
    """Return whether a launch would find this program: at its path, or else by its name."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return os.access(program, os.X_OK) or shutil.which(Path(program).name, path=path) is not None


class RayHost:
    """Passes calls on to `coral.cluster.host`, of the Coral that is installed on the node."""

    def __init__(self, asked: dict[str, Any], lease: float) -> None:
        self._host: Any = None
        self._problem = ""
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]
        try:
            from coral.cluster.host import Host
        except ImportError as error:
            self._problem = f"the node has no Coral of version {asked['version']}, which agents need there: {error}"
            ending = threading.Timer(lease, os._exit, (1,))  # its bridge ends it before, if there is still one
            ending.daemon = True
            ending.start()
            return
        if not ray.get_runtime_context().get_accelerator_ids().get("GPU"):
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray leaves that of the node, whose cards an agent would see
        self._host = Host(asked, lease)

    def node(self) -> str:
        return str(ray.get_runtime_context().get_node_id())

    def exchange(self, received: int, wanted: int, seconds: float) -> Any:
        if self._host is None:
            return {"at": 0, "events": [{"ended": {"problem": self._problem}}]}
        return self._host.exchange(received, wanted, seconds)

    def take(self, first: int, orders: list[Any]) -> Any:
        return first if self._host is None else self._host.take(first, orders)
