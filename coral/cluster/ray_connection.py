"""A connection to a Ray cluster: enters it or says why not, and watches its nodes and its head. Only in the processes
of bridges: Ray takes 65 MB and 25 threads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.bridge import fail, report_trouble
from coral.cluster.node_report import closed

ASK_SECONDS = 30.0  # for nodes to say what they have
CONNECT_SECONDS = 20.0
SILENT_SECONDS = 10.0  # for which the head may not answer before the cluster counts as one that cannot be used
ABSENT_SECONDS = 60.0  # for which the head may not list a node before that counts as dead
REASON = 300  # characters
ASKED_AT_ONCE = 32  # nodes whose ports are tried
_PORTS = {"the raylet": "NodeManagerPort", "the object manager": "ObjectManagerPort"}
Given = Callable[[str], tuple[Any, ...]]
_REFUSED = ("InvalidAuthToken", "Unauthenticated", "authentication token", "Version mismatch")


class RayConnection:
    """`nodes`: as Ray describes them, dead ones too."""

    def __init__(
        self, folder: Path, address: str, *,
        namespace: str, by_value: tuple[str, ...], work: str, needs: Sequence[Mapping[str, float]] | None,
    ) -> None:  # fmt: skip
        """Enter the cluster, or end this process and report why. `by_value`: modules of `coral.cluster` that are sent
        to nodes; `work`: what nodes do, for messages; `needs`: the resources that one piece of it may need; None if a
        cluster without nodes for it can be used."""
        self._folder, self._address, self._work, self._needs = folder, address, work, needs
        self._logged = (folder / wire.LOG).stat().st_size  # bytes that other bridges have written to the log
        self.ray: Any = self._connect(namespace, by_value)
        self.nodes: list[dict[str, Any]] = self.ray.nodes()
        self._answered = time.monotonic()  # when the head last answered
        self._absent: dict[str, float] = {}  # since when it does not list nodes that were asked for

    def _connect(self, namespace: str, by_value: tuple[str, ...]) -> Any:
        """Ray may wait for ever for a head that is missing or refuses."""
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
        refusals: tuple[type[Exception], ...] = (RuntimeError, ConnectionError, ValueError, ImportError)
        try:
            ray = import_module("ray")
            refusals += (ray.exceptions.RayError,)  # as where the file of the token is missing
            for name in by_value:
                ray.cloudpickle.register_pickle_by_value(import_module(f"coral.cluster.{name}"))
            ray.init(self._address, namespace=namespace, log_to_driver=False, logging_level="ERROR")
        except refusals as error:
            why = " ".join(str(error).split())[:REASON]  # of versions that differ, the last lines say which
            fail(self._folder, f"the cluster at {self._address} refuses: {why}")
        giving_up.cancel()
        report_trouble(self._folder, "")
        return ray

    def _give_up(self) -> None:
        with (self._folder / wire.LOG).open("rb") as file:
            file.seek(self._logged)
            log = file.read(20_000).decode("utf-8", "replace").splitlines()
        why = [line.strip() for line in log if any(word in line for word in _REFUSED)]
        fail(
            self._folder,
            f"the cluster at {self._address} does not let us in within {CONNECT_SECONDS:g} s"
            + (f": {why[-1][:REASON]}" if why else ": is RAY_AUTH_TOKEN_PATH the cluster's token?"),
        )

    def watch(self, look: Callable[[], None] = lambda: None) -> None:
        """Keep `nodes` up to date from now on, and report when the head does not answer. `look`: called after each
        update."""
        threading.Thread(target=self._watch_head, daemon=True).start()
        threading.Thread(target=self._watch_nodes, args=(look,), daemon=True).start()

    def on(self, node: str, function: Any) -> Any:
        """Return the remote function as one that runs on this node alone. It reserves no processor: it also starts on a
        node that is full."""
        strategies = import_module("ray.util.scheduling_strategies")
        there = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        return function.options(num_cpus=0, max_retries=0, scheduling_strategy=there)

    def describe(self, found: dict[str, Any], ask: Callable[..., Any] | None, given: Given = lambda _: ()) -> None:
        """Set `nodes` of `found` to all living nodes, each with its resources in total and free; or set `problem`.
        `ask`: a function that is called on each node, whose answer is added, with the ports that this machine cannot
        reach, `closed_here`; `given`: its arguments, for the node's id."""
        try:
            status = import_module("ray.autoscaler.v2.sdk").get_cluster_status(self._address)
        except self.ray.exceptions.RayError as error:
            found["problem"] = f"the head does not answer: {str(error).strip().splitlines()[0]}"
            return
        nodes = sorted([*status.active_nodes, *status.idle_nodes], key=lambda node: node.ip_address)
        arguments = {node.node_id: given(node.node_id) for node in nodes}
        asked = [{}] * len(nodes) if ask is None else self._asked(ask, arguments)
        if ask is not None:
            with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
                shut = pool.map(closed, [self.ports(node.node_id) for node in nodes])
            asked = [{**answer, "closed_here": ports} for answer, ports in zip(asked, shut, strict=True)]
        found["nodes"] = [
            {
                "id": node.node_id,
                "address": node.ip_address,
                "total": _named(node.total_resources()),
                "free": _named(node.available_resources()),
                **answer,
            }
            for node, answer in zip(nodes, asked, strict=True)
        ]

    def ports(self, node: str = "") -> dict[str, str]:
        """Return host and port of what a node listens on and other nodes must reach, by name. `node`: its id in Ray; if
        it is empty, the node on this machine."""
        node = node or self.ray.get_runtime_context().get_node_id()
        return {
            name: f"{listed['NodeManagerAddress']}:{listed[key]}"
            for listed in self.nodes
            if listed["NodeID"] == node
            for name, key in _PORTS.items()
        }

    def has_free(self, node: str, resources: Mapping[str, float]) -> bool:
        """Return whether a node has these resources free; true if the head does not answer."""
        try:
            status = import_module("ray.autoscaler.v2.sdk").get_cluster_status(self._address)
        except self.ray.exceptions.RayError:
            return True
        free = [
            status_of_node.available_resources()
            for status_of_node in (*status.active_nodes, *status.idle_nodes)
            if status_of_node.node_id == node
        ]
        return any(
            all(free_resources.get(name, 0) >= amount for name, amount in resources.items()) for free_resources in free
        )

    def _asked(self, ask: Callable[..., Any], given: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Have each node say what it has. One that cannot has a `problem`; one that does not answer is `unknown`."""
        ray = self.ray
        remote = ray.remote(ask)
        tasks = [self.on(node, remote).remote(*arguments) for node, arguments in given.items()]
        until = time.monotonic() + ASK_SECONDS
        answers: list[dict[str, Any]] = []
        for task in tasks:
            try:
                answers.append(ray.get(task, timeout=max(until - time.monotonic(), 0.0)))
            except ray.exceptions.GetTimeoutError:
                answers.append({"problem": f"it did not answer within {ASK_SECONDS:g} s", "unknown": True})
            except ray.exceptions.RayError as error:
                why = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
                answers.append({"problem": why, "unknown": not isinstance(error, ray.exceptions.RayTaskError)})
        return answers

    def is_dead(self, node: str) -> bool:
        """Return whether the head says that a node is dead, or has not listed it for ABSENT_SECONDS: a head that comes
        back without memory lists no node before that has reported to it again."""
        for listed in self.nodes:
            if listed["NodeID"] == node:
                self._absent.pop(node, None)
                return not listed["Alive"]
        answered = self._answered
        return answered > self._absent.setdefault(node, answered) + ABSENT_SECONDS

    def _watch_head(self) -> None:
        """Report when the head does not answer. Ray's own calls then block, or end this process after a minute."""
        before = time.monotonic()
        while True:
            time.sleep(1)
            now = time.monotonic()
            if now < before + 3:  # else this process stood still, and not the head
                report_trouble(self._folder, self._problem(now))
            before = now

    def _problem(self, now: float) -> str:
        if now > self._answered + SILENT_SECONDS:
            return f"the head of the cluster at {self._address} has not answered for more than {SILENT_SECONDS:g} s"
        if self._needs is not None and not any(node["Alive"] and _runs(node, self._needs) for node in self.nodes):
            return f"the cluster at {self._address} has no node that runs {self._work}"
        return ""

    def _watch_nodes(self, look: Callable[[], None]) -> None:
        while True:
            self._look()
            look()
            time.sleep(1)

    def _look(self) -> None:
        self.nodes, before, self._answered = self.ray.nodes(), self._answered, time.monotonic()
        if self._answered > before + SILENT_SECONDS:  # nodes have all their time to report to a head that was away
            self._absent.clear()


def _runs(node: Mapping[str, Any], needs: Sequence[Mapping[str, float]]) -> bool:
    """Return whether a node runs work: one with processors does. One without, as the head often is, does if the work
    needs none and the node has all that it needs."""
    has = node["Resources"]
    gives_all = (all(has.get(name, 0) >= amount for name, amount in need.items()) for need in needs)
    return has.get("CPU", 0) > 0 or any(gives_all)


def _named(resources: Mapping[str, float]) -> dict[str, float]:
    """Leave out what Ray has for its own use, such as the address of each node."""
    return {name: round(amount, 4) for name, amount in resources.items() if not name.startswith(("node:", "object_"))}
