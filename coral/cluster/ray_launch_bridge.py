"""The bridge of a run's agents to a Ray cluster: each launch has an actor of its own there, which outlives a bridge."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.bridge import LEASE_SECONDS, RefusedError, wait_for_lock
from coral.cluster.launch_bridge import LaunchBridge, LaunchClient, LostError
from coral.cluster.ray_bridge import options_of, too_large, why_waiting
from coral.cluster.ray_connection import RayConnection

NAMESPACE = "coral-agents"
CALLS = 8  # of a host's methods that may run at the same time
ANSWER_SECONDS = 5.0  # without an answer of a host, until it is looked whether its node is dead
NODE_SECONDS = 3.0  # for the node of the launch before to have room again
PLACE_SECONDS = 1.0  # between two looks whether a launch has got its place
REASON = 300  # characters
FULL = "no node has room for it"


def main(folder: str, address: str, needs: str) -> None:
    """`needs`: a JSON list; for each assignment on the cluster, the resources that one of its launches reserves."""
    if wait_for_lock(Path(folder)):
        RayLaunchBridge(Path(folder), address, json.loads(needs)).serve()


class RayLaunchBridge(LaunchBridge):
    def __init__(self, folder: Path, address: str, needs: list[dict[str, float]]) -> None:
        super().__init__(folder)
        self._cluster = RayConnection(
            folder,
            address,
            namespace=NAMESPACE,
            by_value=("ray_host", "node_report", "node"),
            work="agents",
            needs=needs,
        )
        self._ray = self._cluster.ray
        self._prefix = f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}/"

    def serve(self) -> None:
        self._cluster.watch()
        super().serve()
        self._ray.shutdown()

    def host(self, client: LaunchClient) -> Any:
        launch = client.asked["launch"]
        actor = self._found(launch)
        if actor is None and client.asked["began"]:
            raise LostError("the process that ran it there ended")
        actor = actor or self._made(client)
        ref = actor.node.remote()
        while not self._ray.wait([ref], timeout=PLACE_SECONDS)[0]:
            if client.has_left.is_set():
                raise LostError("its process has ended")
            client.wait_for(FULL)
        try:
            client.begin_on(self._ray.get(ref))
        except self._ray.exceptions.RayError as error:
            raise LostError(_short(error)) from error
        return actor

    def _found(self, launch: str) -> Any:
        with contextlib.suppress(ValueError):
            return self._ray.get_actor(self._prefix + launch)
        return None

    def _made(self, client: LaunchClient) -> Any:
        asked, ray = client.asked, self._ray
        while refusal := self._refusal(asked, self._cluster.nodes):
            client.wait_for(refusal)
            if client.has_left.wait(PLACE_SECONDS):
                raise LostError("its process has ended")
        place: dict[str, Any] = {"scheduling_strategy": "SPREAD"}
        if asked["labels"]:
            place = {"label_selector": asked["labels"]}
        elif self._is_alive(asked["prefers"]):  # the node that has its mirror
            self._wait_for_node(asked["prefers"], asked["resources"])
            strategies = import_module("ray.util.scheduling_strategies")
            there = strategies.NodeAffinitySchedulingStrategy(asked["prefers"], soft=True, _spill_on_unavailable=True)
            place = {"scheduling_strategy": there}  # `soft` alone would wait for room there, however long
        host = ray.remote(import_module("coral.cluster.ray_host").RayHost)
        try:
            return host.options(
                **{**options_of(asked["resources"]), **place},
                name=self._prefix + asked["launch"], lifetime="detached", get_if_exists=True,
                max_concurrency=CALLS, max_restarts=0, max_task_retries=0,
            ).remote(asked, LEASE_SECONDS)  # fmt: skip
        except (TypeError, ValueError, RuntimeError) as error:  # as for one and a half GPUs
            raise RefusedError(f"Ray refuses such a launch: {_short(error)}") from error

    def _refusal(self, asked: Mapping[str, Any], nodes: list[dict[str, Any]]) -> str:
        """Return why none of the nodes can run this launch, even without other work; empty if one can."""
        wanted = asked["labels"].items()
        fit = [node for node in nodes if wanted <= node["Labels"].items()]
        if not any(node["Alive"] for node in fit):
            return f"no node has the labels {', '.join(f'{name}={value}' for name, value in wanted)}"
        return too_large(asked["resources"], fit)

    def _wait_for_node(self, node: str, resources: Mapping[str, float]) -> None:
        """Wait a moment for a node to have these resources free: the launch before may just be giving them back."""
        until = time.monotonic() + NODE_SECONDS
        while time.monotonic() < until and not self._cluster.has_free(node, resources):
            time.sleep(0.05)

    def _is_alive(self, node: str) -> bool:
        return any(listed["NodeID"] == node and listed["Alive"] for listed in self._cluster.nodes)

    def described(self, places: list[dict[str, Any]], *, by_nodes: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"problem": wire.trouble(self._folder), "nodes": [], "refused": []}
        clients = sorted(self.present().values(), key=lambda client: str(client.asked["launch"]))
        nodes = {node["NodeID"]: [node] for node in self._cluster.nodes}

        def given(node: str) -> tuple[dict[str, str], list[str] | None]:
            fit = [place["programs"] for place in places if not self._refusal(place, nodes.get(node, []))]
            return self._cluster.ports(), sorted(set(chain.from_iterable(fit))) if fit else None

        if not found["problem"]:
            found["refused"] = [self._refusal(place, self._cluster.nodes) for place in places]
            ask = import_module("coral.cluster.ray_host").describe_node if by_nodes else None
            self._cluster.describe(found, ask, given)
        return {**found, "launches": [self._shown(client, found["nodes"]) for client in clients]}

    def _shown(self, client: LaunchClient, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        """Describe a launch for `coral cluster`. `nodes`: the nodes, each with the resources that are free on it."""
        agent, _, launch = client.asked["launch"].rpartition("/")
        return {
            "agent": agent,
            "launch": int(launch),
            "node": next(
                (listed["NodeManagerAddress"] for listed in self._cluster.nodes if listed["NodeID"] == client.node), ""
            ),
            "seconds": round(time.monotonic() - client.since, 1),
            "waits": "" if client.node else self._why_waiting(client, nodes),
        }

    def _why_waiting(self, client: LaunchClient, nodes: list[dict[str, Any]]) -> str:
        """Return why a launch runs on no node yet. Ray does not tell whether resources are missing or the process is
        still starting, so the free resources of the nodes decide."""
        fit = {node["NodeID"] for node in self._cluster.nodes if not self._refusal(client.asked, [node])}
        able = [node for node in nodes if node["id"] in fit]
        return why_waiting(client.asked["resources"], able) if client.waits == FULL and able else client.waits

    def call(self, client: LaunchClient, method: str, *arguments: Any) -> Any:
        errors = self._ray.exceptions
        ref = getattr(client.host, method).remote(*arguments)
        while True:
            try:
                return self._ray.get(ref, timeout=ANSWER_SECONDS)
            except errors.GetTimeoutError:
                if self._cluster.is_dead(client.node):
                    raise LostError("its node died") from None
            except errors.RayError as error:
                raise LostError(_short(error)) from error

    def end(self, launch: str) -> None:
        if (actor := self._found(launch)) is not None:
            self._ray.kill(actor)

    def launches(self) -> list[str]:
        names = self._ray.util.list_named_actors()
        return [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]


def _short(error: Exception) -> str:
    lines = [line.strip() for line in str(getattr(error, "cause", None) or error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:REASON]
