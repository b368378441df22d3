"""The bridge to a Ray cluster: the one process that speaks to Ray, so that nothing of it is imported elsewhere.

Grades belong to the run's owner on the cluster (`coral.cluster.owner`), so that they outlive a bridge.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.bridge import LEASE_SECONDS, Bridge, RefusedError, fail, wait_for_lock
from coral.cluster.shipping import Shipping

CONNECT_SECONDS = 20.0
NEWS_SECONDS = 1.0
NAMESPACE = "coral"
_REFUSED = ("InvalidAuthToken", "Unauthenticated", "authentication token", "Version mismatch")


def main(folder: str, address: str) -> None:
    if wait_for_lock(Path(folder)):
        RayBridge(Path(folder), address).serve()


class RayBridge(Bridge):
    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder)
        self._address = address
        self._shipping = Shipping()
        self._connect()
        self._owner = self._new_owner()
        self._nodes: list[dict[str, Any]] = self._ray.nodes()

    # The cluster.

    def _connect(self) -> None:
        """Connect to the cluster, or end this process and say why: Ray may wait for ever for a head that is missing or
        refuses."""
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as error:
            fail(
                self._folder, f"the head of the cluster at {self._address} cannot be reached: {error.strerror or error}"
            )
        giving_up = threading.Timer(CONNECT_SECONDS, self._give_up)
        giving_up.daemon = True
        giving_up.start()
        try:
            self._ray: Any = import_module("ray")
            for name in ("owner", "node"):
                self._ray.cloudpickle.register_pickle_by_value(import_module(f"coral.cluster.{name}"))
            self._ray.init(self._address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        except (RuntimeError, ConnectionError, ValueError, ImportError) as error:
            fail(self._folder, f"the cluster at {self._address} refuses: {str(error).strip().splitlines()[0]}")
        giving_up.cancel()
        (self._folder / wire.TROUBLE).unlink(missing_ok=True)

    def _give_up(self) -> None:
        log = (self._folder / wire.LOG).read_text("utf-8", "replace")[-20_000:].splitlines()
        why = [line.strip() for line in log if any(word in line for word in _REFUSED)]
        fail(
            self._folder,
            f"the cluster at {self._address} does not let us in within {CONNECT_SECONDS:g} s"
            + (f": {why[-1][:300]}" if why else ": is RAY_AUTH_TOKEN_PATH the cluster's token?"),
        )

    def _new_owner(self) -> Any:
        ray = self._ray
        strategies = import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        owner = import_module("coral.cluster.owner")
        made = ray.remote(owner.Owner).options(
            name=f"coral-{hashlib.sha256(str(self._folder).encode()).hexdigest()[:16]}",
            lifetime="detached", get_if_exists=True, num_cpus=0, max_concurrency=owner.CALLS,
            scheduling_strategy=here,
        )  # fmt: skip
        return made.remote(LEASE_SECONDS)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the owner. An owner that has ended is replaced; clients learn that its grades are lost."""
        for _ in range(3):
            owner = self._owner
            try:
                return self._ray.get(getattr(owner, method).remote(*arguments))
            except self._ray.exceptions.RayActorError:
                with self._changed:
                    if owner is self._owner:
                        self._owner = self._new_owner()
        return os._exit(4)  # another bridge begins anew

    def _watch_nodes(self) -> None:
        """Report grades on dead nodes as lost, for Ray keeps such a task pending; end those that no client asks for."""
        while True:
            self._nodes = self._ray.nodes()
            dead = {node["NodeID"] for node in self._nodes if not node["Alive"]}
            for tried in self.present():
                if tried.node in dead:
                    tried.node = ""
                    self._call("lose", tried.key, "its node died")
            self.cancel_unclaimed()
            time.sleep(1)

    # The clients.

    def serve(self) -> None:
        for work in (self._watch_nodes, self._tell_news):
            threading.Thread(target=work, daemon=True).start()
        super().serve()
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._owner)
        self._ray.shutdown()

    def check(self, resources: dict[str, Any]) -> None:
        if refusal := too_large(resources, self._nodes):
            raise RefusedError(refusal)

    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        if not self._call("has_grade", key):
            sha, archive = self._shipping.archive(Path(order["places"]["private"]))
            if not self._call("has", sha):
                self._call("keep", sha, archive)
            order = {**order, "archive": sha}
            self._call("submit", key, order, self._shipping.checkout(order), sha, _options(resources))

    def cancel(self, key: str) -> None:
        self._call("cancel", key)

    def keys(self) -> list[str]:
        return list(self._call("keys"))

    def _tell_news(self) -> None:
        while True:
            cursors = {tried.key: (tried.seen, tried.is_submitted) for tried in self.wait_for_tries()}
            for key, (at, events) in self._call("news", cursors, NEWS_SECONDS).items():
                with self._changed:
                    tried = self._tries.get(key)
                if tried is not None:
                    new = tried.tell(at, events)
                    tried.node = next((event["node"] for event in new if "node" in event), tried.node)


def _options(asked: dict[str, float]) -> dict[str, Any]:
    own = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    named = {own[name]: amount for name, amount in asked.items() if name in own}
    others = {name: amount for name, amount in asked.items() if name not in own and amount}
    return {**named, "resources": others, "scheduling_strategy": "SPREAD"}


_UNITS = {"CPU": "CPUs", "GPU": "GPUs", "memory": "bytes of memory"}


def too_large(asked: dict[str, float], nodes: list[dict[str, Any]]) -> str:
    """Return why no node can give these resources, even without other work; empty if one can. Ray would wait for
    ever."""
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    if any(all(node.get(name, 0) >= amount for name, amount in asked.items()) for node in alive):
        return ""
    for name, amount in asked.items():
        largest = max((node.get(name, 0) for node in alive), default=0)
        if largest < amount:
            return f"it needs {amount:g} {_UNITS.get(name, name)}; the largest node has {largest:g}"
    return f"no node has {', '.join(f'{amount:g} {_UNITS.get(name, name)}' for name, amount in asked.items())} at once"
