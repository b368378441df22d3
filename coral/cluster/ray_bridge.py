"""The bridge to a Ray cluster: the one process that speaks to Ray, so that nothing of it is imported elsewhere.

Grades belong to the run's owner on the cluster (`coral.cluster.owner`), so that they outlive a bridge.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Collection
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.bridge import (
    LEASE_EVERY,
    LEASE_SECONDS,
    Bridge,
    DelayedError,
    RefusedError,
    Try,
    report_capacity,
    wait_for_lock,
)
from coral.cluster.excluded_nodes import ExcludedNodes
from coral.cluster.ray_connection import RayConnection
from coral.cluster.shipping import Shipping

DISCARD_SECONDS = 10.0  # for nodes to remove what was sent to them, when a run ends
NEWS_SECONDS = 1.0
RUNS_SECONDS = 2.0  # for the owners of all runs to say what they have
NODES_SECONDS = 5.0  # until it is looked again whether a node can run a grade that none could
NAMESPACE = "coral"
MOST_OF_A_NODE = 1000  # grades that fit on a node of which they need nothing
_EXACT = 1e-6  # by which an amount may be short of what is asked: three times 0.1 is not 0.3
_OTHER_NAMES = {"nsight", "rocprof_sys"}  # by which a runtime_env takes two of the fields that Ray lists


def main(folder: str, address: str, needs: str) -> None:
    """`address`: that of the head; `needs`: JSON with the `resources` of a grade, whether the cluster `grows`, that is
    adds nodes for what waits, and whether the bridge `discards` at its end what it has sent to nodes."""
    if wait_for_lock(Path(folder)):
        RayBridge(Path(folder), address, json.loads(needs)).serve()


class RayBridge(Bridge):
    def __init__(self, folder: Path, address: str, needs: dict[str, Any]) -> None:
        super().__init__(folder)
        self._address, self._resources, self._grows = address, needs["resources"], needs["grows"]
        self._shipping, self._sent = Shipping(), set[str]()  # hashes of archives
        self._discards = needs["discards"]
        self._cluster = RayConnection(
            folder, address, namespace=NAMESPACE, work="grades",
            by_value=("owner", "node", "node_report", "archive", "spare_guard", "guard_protocol", "spread_folders"),
            needs=None if self._grows else [self._resources],
        )  # fmt: skip
        self._ray = self._cluster.ray
        self._known_of_environments = import_module("ray.runtime_env").RuntimeEnv.known_fields | _OTHER_NAMES
        self._owner = self._new_owner()
        self._excluded = ExcludedNodes(folder)
        self._replacing = threading.Lock()  # held while an owner that has ended is replaced

    # The cluster.

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
        return made.remote(self._folder.parent.parent.name, LEASE_SECONDS)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the owner. An owner that has ended is replaced; clients learn that its grades are lost."""
        for _ in range(3):
            owner = self._owner
            try:
                return self._ray.get(getattr(owner, method).remote(*arguments))
            except self._ray.exceptions.RayActorError:
                with self._replacing:
                    if owner is self._owner:
                        self._owner = self._new_owner()
        return os._exit(4)  # another bridge begins anew

    def _report_capacity(self) -> None:
        """Report which nodes are excluded, and how many grades fit on the others; if there are none, on all."""
        self._excluded.report()
        nodes = self._cluster.nodes
        capacity = capacity_of(_without(nodes, self._excluded.now()), self._resources)
        report_capacity(self._folder, capacity or capacity_of(nodes, self._resources))

    def _end_lost(self) -> None:
        """Report grades on dead nodes as lost, for Ray keeps such a task pending, and what those wait for that no node
        can run; end those that no client asks for."""
        while True:
            present, refusal = self.present(), self.refusal(self._resources)
            some_run = any(tried.node and not tried.is_over for tried in present)
            for tried in present:
                if tried.node and self._cluster.is_dead(tried.node):
                    tried.place = {}
                    self._call("lose", tried.key, "its node died")
                elif not tried.node and not tried.is_over:
                    if tried.avoids and not self._runs_without(tried.avoids, tried.resources):
                        gone = {"lost": "the nodes that it waited for are gone", "counts": False}
                        self._call("push", tried.key, gone)
                    tried.wait_for(refusal, behind=some_run)
            self.cancel_unclaimed()
            time.sleep(1)

    # The clients.

    def serve(self) -> None:
        self._cluster.watch(self._report_capacity)
        for work in (self._end_lost, self._tell_news, self._renew):
            threading.Thread(target=work, daemon=True).start()
        super().serve()
        # The lock is never released: else the thread that waits for news would replace the owner that is killed here.
        # The next bridge would use that owner, and Ray, which ends the workers of an ended driver after each task,
        # would start a worker for every grade.
        self._replacing.acquire(timeout=DISCARD_SECONDS)
        with contextlib.suppress(self._ray.exceptions.RayError):
            if self._discards and self._sent:
                self._discard()
            self._ray.kill(self._owner)
        self._ray.shutdown()

    def _discard(self) -> None:
        """Have the nodes remove what was sent to them, if they do so in time."""
        discard = self._ray.remote(import_module("coral.cluster.node").discard)
        tasks = [
            self._cluster.on(node["NodeID"], discard).remote(sorted(self._sent))
            for node in self._cluster.nodes
            if node["Alive"]
        ]
        self._ray.wait(tasks, num_returns=len(tasks), timeout=DISCARD_SECONDS)

    def refusal(self, resources: dict[str, Any]) -> str:
        return too_large(resources, self._cluster.nodes)

    def look(self, found: dict[str, Any], *, by_nodes: bool) -> dict[str, str]:
        ask = import_module("coral.cluster.owner").describe_node if by_nodes else None
        if by_nodes:
            self._call("keys")  # a new owner may still start, and then no node would reach it in time
        used, are_all = self._of_owners("archives") if by_nodes else ([], False)
        archives = sorted(chain.from_iterable(used)) if are_all else None
        self._cluster.describe(found, ask, lambda _: (self._owner, self._cluster.ports(), archives))
        if found["problem"]:
            return {}
        found["runs"] = [run for run in self._of_owners("described")[0] if run["running"] or run["waiting"]]
        excluded = self._excluded.now()
        for node in found["nodes"]:
            node["excluded"] = excluded.get(node["id"], "")
        nodes = [node for node in found["nodes"] if not node["excluded"]] or found["nodes"]
        return {tried.key: why_waiting(tried.resources, nodes) for tried in self.present()}

    def _of_owners(self, method: str) -> tuple[list[Any], bool]:
        """Call a method of the owners of all runs that have grades on the cluster, this one too. Return the answers,
        and whether all have answered in time."""
        ray, asked, are_all = self._ray, [], True
        for name in sorted(ray.util.list_named_actors()):  # of our namespace
            try:
                asked.append(getattr(ray.get_actor(name), method).remote())
            except ValueError:  # it has ended
                continue
            except AttributeError:  # an earlier Coral has made it
                are_all = False
        done, late = ray.wait(asked, num_returns=len(asked), timeout=RUNS_SECONDS) if asked else ((), ())
        answers = []
        for answer in done:
            with contextlib.suppress(ray.exceptions.RayError):  # it has ended meanwhile
                answers.append(ray.get(answer))
        return answers, are_all and not late

    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        if unknown := order["environment"].keys() - self._known_of_environments:
            raise RefusedError(f"Ray knows no {', '.join(sorted(unknown))} in an environment")
        while not self._grows and (refusal := self.refusal(resources)):
            if not self.is_waited_for(key, refusal, NODES_SECONDS):
                return
        if self.was_submitted(key) and (self._call("has_grade", key) or self.has_sent_events(key)):
            return
        try:
            self._send(key, order, resources)
        except self._ray.exceptions.RayError as error:  # as where a store has no room, and no disk for what is too much
            raise DelayedError(" ".join(str(getattr(error, "cause", None) or error).split())) from error

    def _send(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        """Send a grade to the owner, with the archives that the owner lacks."""
        sha, archive = self._shipping.archive(Path(order["places"]["private"]))
        parcel = self._shipping.parcel(order)
        if parcel.outdated:
            self._call("drop", parcel.outdated)
        archives = {sha: archive, parcel.base_sha: parcel.base}
        self._sent.update(archives.keys() - {""})
        order = {**order, "archive": sha, "base": parcel.base_sha, "removed": parcel.removed}
        environment = {"runtime_env": order["environment"]} if order["environment"] else {}
        options = {**options_of(resources), "scheduling_strategy": "SPREAD", **self._elsewhere(key), **environment}
        driver = self._ray.get_runtime_context().get_job_id()
        while missing := self._call("submit", key, order, parcel.changes, options, driver):
            for missing_sha in missing:
                self._call("keep", missing_sha, archives[missing_sha])

    def _elsewhere(self, key: str) -> dict[str, Any]:
        """Return the options by which a try goes to no node that is excluded, if another one can run it."""
        tried, excluded = self._tries.get(key), self._excluded.now()
        if tried is None or not excluded or not self._runs_without(excluded, tried.resources):
            return {}
        tried.avoids = frozenset(excluded)
        return {"label_selector": {"ray.io/node-id": f"!in({','.join(sorted(excluded))})"}}

    def _runs_without(self, nodes: Collection[str], resources: dict[str, float]) -> bool:
        """Return whether a node other than these can run a grade, even if it is busy now."""
        return not too_large(resources, _without(self._cluster.nodes, nodes))

    def cancel(self, key: str) -> None:
        self._call("cancel", key)

    def keys(self) -> list[str]:
        return list(self._call("keys"))

    def _renew(self) -> None:
        """Renew the lease of the owner as long as this bridge runs, also while there is no grade. Without an owner, the
        first grade after a pause would wait until a new one has started."""
        while True:
            time.sleep(LEASE_EVERY)
            self._call("news", {}, 0.0)

    def _tell_news(self) -> None:
        while True:
            present = [tried for tried in self.wait_for_tries() if not tried.is_over]
            cursors = {tried.key: (tried.seen, tried.is_submitted) for tried in present}
            news = self._call("news", cursors, NEWS_SECONDS)
            for tried in present:
                if tried.key in news:
                    at, events = news[tried.key]
                    for event in events:
                        self._note_disk(tried, event)
                    tried.tell(at, events)

    def _note_disk(self, tried: Try, event: dict[str, Any]) -> None:
        """If the event says that a try was lost because its node's disk is full or cannot be used, give that node no
        grades for a while, and do not count the try for `max_retries` if another node can run the grade. If it says
        that a grade has ended there, the disk works again."""
        if "full" in event:
            self._excluded.add(event["full"], event["address"], event["lost"])
            event["counts"] = not self._runs_without(self._excluded.now(), tried.resources)
        elif "ended" in event:
            self._excluded.forget(event.get("node", tried.node))


def _without(nodes: list[dict[str, Any]], excluded: Collection[str]) -> list[dict[str, Any]]:
    return [node for node in nodes if node["NodeID"] not in excluded]


def options_of(asked: dict[str, float]) -> dict[str, Any]:
    """Return these resources as options of a task or an actor."""
    own = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    named = {own[name]: amount for name, amount in asked.items() if name in own}
    others = {name: amount for name, amount in asked.items() if name not in own and amount}
    return {**named, "resources": others}


_UNITS = {"memory": "bytes of memory"}


def why_waiting(asked: dict[str, float], nodes: list[dict[str, Any]]) -> str:
    """Return why a grade that needs these resources has not begun."""
    if shortage := _shortage(asked, [node["free"] for node in nodes], " free"):
        return shortage
    able = [node for node in nodes if _has_all(node["free"], asked)]
    if any(_surely_has_cards(node, asked.get("GPU", 0)) for node in able):
        return "a node has room for it"
    free = max(node["free"]["GPU"] for node in able)
    return f"unknown: a node has {_amount('GPU', free)} free together, and Ray does not tell how much of each card"


def _surely_has_cards(node: dict[str, Any], asked: float) -> bool:
    """Return whether a node has these graphics cards free, however what is free is spread over its cards. A share is of
    one card, and one card has at least as much free as the average one."""
    free: float = node["free"].get("GPU", 0)
    cards: float = node["total"].get("GPU", 0)
    return free + _EXACT >= (cards * asked if asked < 1 else cards)


def too_large(asked: dict[str, float], nodes: list[dict[str, Any]]) -> str:
    """Return why no node can give these resources, even without other work; empty if one can. Ray would wait for
    ever."""
    return _shortage(asked, [node["Resources"] for node in nodes if node["Alive"]])


def capacity_of(nodes: list[dict[str, Any]], asked: dict[str, float]) -> int:
    """Return how many grades that need these resources fit on the living nodes at the same time."""
    return sum(_fits(node["Resources"], asked) for node in nodes if node["Alive"])


def _fits(node: dict[str, float], asked: dict[str, float]) -> int:
    counts = [_times(name, node.get(name, 0), amount) for name, amount in asked.items() if amount]
    return min(counts, default=MOST_OF_A_NODE)


def _times(name: str, amount: float, asked: float) -> int:
    """How many times a node gives what is asked. Shares of a graphics card are never of two cards."""
    if name == "GPU" and asked < 1:
        return math.floor(amount) * math.floor(1 / asked + _EXACT)
    return math.floor(amount / asked + _EXACT)


def _shortage(asked: dict[str, float], nodes: list[dict[str, float]], free: str = "") -> str:
    """Return what no node has of the resources that are asked; empty if one has them all. `nodes`: what each has."""
    if any(_has_all(node, asked) for node in nodes):
        return ""
    for name, amount in asked.items():
        largest = max((node.get(name, 0) for node in nodes), default=0)
        if largest < amount:
            most = "the node with the most" if free else "the largest node"
            if name.startswith(wire.CARD):
                return f"it needs {_amount(name, amount)}; no node has one{free}"
            return f"it needs {_amount(name, amount)}; {most} has {largest:g}{free}"
    listed = ", ".join(_amount(name, amount) for name, amount in asked.items() if amount)
    return f"no node has {listed}{free} at once"


def _has_all(node: dict[str, float], asked: dict[str, float]) -> bool:
    return all(node.get(name, 0) >= amount for name, amount in asked.items())


def _amount(name: str, amount: float) -> str:
    if name.startswith(wire.CARD):
        return f"a graphics card of type {name.removeprefix(wire.CARD)}"
    plural = "s" if name in ("CPU", "GPU") and amount != 1 else ""
    return f"{amount:g} {_UNITS.get(name, name)}{plural}"
