"""What no node could ever run is told from what has to wait, for Ray would wait for ever and say nothing; and how many
grades there is room for."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import ray_bridge, wire
from coral.cluster.bridge import Bridge, Try
from coral.cluster.excluded_nodes import ExcludedNodes
from coral.cluster.ray_bridge import MOST_OF_A_NODE, RayBridge, capacity_of, too_large, why_waiting

NODES = [
    {"Alive": True, "Resources": {"CPU": 4.0, "GPU": 2.0}},
    {"Alive": True, "Resources": {"CPU": 16.0, "slot": 1.0}},
    {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
]


def test_what_fits_on_a_living_node_is_not_too_large() -> None:
    assert too_large({"CPU": 4, "GPU": 2}, NODES) == ""
    assert too_large({"CPU": 1, "GPU": 0, "slot": 1}, NODES) == ""


def test_what_no_node_has_is_named_with_the_most_that_one_has() -> None:
    assert too_large({"CPU": 1, "GPU": 8}, NODES) == "it needs 8 GPUs; the largest node has 2"
    assert too_large({"CPU": 32}, NODES) == "it needs 32 CPUs; the largest node has 16"
    assert too_large({"CPU": 1, "tpu": 1}, NODES) == "it needs 1 tpu; the largest node has 0"
    assert too_large({"CPU": 1}, []) == "it needs 1 CPU; the largest node has 0"


def test_what_no_node_has_together_is_named_as_well() -> None:
    assert too_large({"CPU": 8, "GPU": 1}, NODES) == "no node has 8 CPUs, 1 GPU at once"


@pytest.mark.parametrize(
    ("asked", "capacity"),
    [
        ({"CPU": 1, "GPU": 0}, 20),
        ({"CPU": 4}, 5),
        ({"CPU": 3, "GPU": 1}, 1),
        ({"CPU": 1, "GPU": 0.5}, 4),
        ({"CPU": 1, "GPU": 0.6}, 2),
        ({"CPU": 0.1, "slot": 0.1}, 10),
        ({"CPU": 32}, 0),
        ({"CPU": 0}, 2 * MOST_OF_A_NODE),
    ],
)
def test_there_is_room_for_what_living_nodes_have_together(asked: dict[str, float], capacity: int) -> None:
    assert capacity_of(NODES, asked) == capacity
    assert capacity_of([], asked) == 0


def test_a_grade_that_waits_is_told_what_is_not_free() -> None:
    total = {"CPU": 2.0, "GPU": 2.0}
    nodes = [{"free": {"CPU": 1.0, "GPU": 0.0}, "total": total}, {"free": {"CPU": 0.0, "GPU": 2.0}, "total": total}]
    assert why_waiting({"CPU": 2}, nodes) == "it needs 2 CPUs; the node with the most has 1 free"
    assert why_waiting({"CPU": 1, "GPU": 1}, nodes) == "no node has 1 CPU, 1 GPU free at once"
    assert why_waiting({"CPU": 1}, nodes) == "a node has room for it"


@pytest.mark.parametrize(
    ("free", "cards", "asked", "why"),
    [
        (0.6, 2, 0.5, "unknown: a node has 0.6 GPUs free together, and Ray does not tell how much of each card"),
        (1.0, 2, 1.0, "unknown: a node has 1 GPU free together, and Ray does not tell how much of each card"),
        (1.0, 2, 0.5, "a node has room for it"),
        (0.5, 1, 0.5, "a node has room for it"),
        (2.0, 2, 2.0, "a node has room for it"),
        (0.4, 2, 0.5, "it needs 0.5 GPUs; the node with the most has 0.4 free"),
    ],
)
def test_what_is_free_of_several_cards_is_no_room_on_one(free: float, cards: float, asked: float, why: str) -> None:
    nodes = [{"free": {"CPU": 9.0, "GPU": free}, "total": {"CPU": 9.0, "GPU": cards}}]
    assert why_waiting({"CPU": 1, "GPU": asked}, nodes) == why
    nodes.append({"free": {"CPU": 9.0}, "total": {"CPU": 9.0}})
    assert why_waiting({"CPU": 1, "GPU": asked}, nodes) == why


def test_a_type_of_graphics_card_that_no_node_has_is_named() -> None:
    asked = {"CPU": 1, "GPU": 1, "accelerator_type:A100": 0.001}
    assert too_large(asked, NODES) == "it needs a graphics card of type A100; no node has one"
    having = {"Alive": True, "Resources": {"CPU": 4.0, "GPU": 2.0, "accelerator_type:A100": 1.0}}
    assert (too_large(asked, [having]), capacity_of([*NODES, having], asked)) == ("", 2)
    assert (
        too_large({**asked, "CPU": 8}, [*NODES, having])
        == "no node has 8 CPUs, 1 GPU, a graphics card of type A100 at once"
    )


@pytest.fixture
def bridge(tmp_path: Path) -> RayBridge:
    """A bridge to three nodes, with a try."""
    made = object.__new__(RayBridge)
    Bridge.__init__(made, tmp_path)
    nodes = [{"NodeID": name, "Alive": True, "Resources": {"CPU": 2.0}} for name in ("n1", "n2", "n3")]
    cluster = SimpleNamespace(nodes=nodes, is_dead=lambda node: node == "dead")
    made._cluster, made._excluded, made._resources = cluster, ExcludedNodes(tmp_path), {"CPU": 1}
    message = {"submit": "k", "seen": 0, "again": False, "order": {"attempt": 1}, "resources": {"CPU": 1}, "began": {}}
    made._tries["k"] = Try(SimpleNamespace(send=lambda **_: None), message)
    return made


def lost_on(node: str) -> dict[str, Any]:
    return {"lost": "OSError: its disk is full", "full": node, "address": f"10.0.0.{node[1:]}"}


def test_a_node_whose_disk_is_full_is_excluded_while_another_can_run_the_grade(bridge: RayBridge) -> None:
    tried, counts = bridge._tries["k"], []
    assert (bridge._elsewhere("k"), tried.avoids) == ({}, frozenset())
    for node in ("n2", "n1", "n3"):
        bridge._note_disk(tried, event := lost_on(node))
        counts.append((event["counts"], bridge._elsewhere("k")))
    assert counts == [
        (False, {"label_selector": {"ray.io/node-id": "!in(n2)"}}),
        (False, {"label_selector": {"ray.io/node-id": "!in(n1,n2)"}}),
        (True, {}),
    ]
    assert wire.excluded(bridge._folder)["10.0.0.1"] == "OSError: its disk is full"


def test_a_node_that_is_excluded_gives_no_room(bridge: RayBridge) -> None:
    capacities = []
    for node in ("n1", "n2", "n3"):
        bridge._note_disk(bridge._tries["k"], lost_on(node))
        bridge._report_capacity()
        capacities.append(wire.capacity(bridge._folder))
    assert capacities == [4, 2, 6]


def test_a_try_that_waits_for_nodes_that_are_gone_is_submitted_anew(
    bridge: RayBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = list[Any]()
    monkeypatch.setattr(bridge, "_call", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(ray_bridge.time, "sleep", lambda _: next(iter(())))
    bridge._note_disk(bridge._tries["k"], lost_on("n1"))
    bridge._elsewhere("k")
    for dead in ([], [1, 2]):
        for at in dead:
            bridge._cluster.nodes[at]["Alive"] = False
        with pytest.raises(StopIteration):
            bridge._end_lost()
    assert called == [("push", "k", {"lost": "the nodes that it waited for are gone", "counts": False})]


@pytest.mark.parametrize(("are_all", "archives"), [(True, ["a", "b"]), (False, None)])
def test_nodes_are_asked_once_the_owner_has_started(
    bridge: RayBridge, monkeypatch: pytest.MonkeyPatch, are_all: bool, archives: list[str] | None
) -> None:
    """Else none would reach it in time. Where an owner does not say what it has, nothing counts as unused."""
    done = list[Any]()
    monkeypatch.setitem(sys.modules, "coral.cluster.owner", SimpleNamespace(describe_node="describe_node"))
    monkeypatch.setattr(bridge, "_call", lambda method: done.append(method))
    answers = {"archives": [["b"], ["a"]], "described": []}
    monkeypatch.setattr(bridge, "_of_owners", lambda method: done.append(method) or (answers[method], are_all))

    def describe(_: Any, ask: Any, given: Any) -> None:
        done.append((ask, given("n1")))

    bridge._cluster.describe, bridge._cluster.ports, bridge._owner = describe, dict, "owner"
    bridge.look({"problem": "", "nodes": []}, by_nodes=True)
    assert done == ["keys", "archives", ("describe_node", ("owner", {}, archives)), "described"]


def test_a_try_on_a_node_that_is_dead_is_lost(bridge: RayBridge, monkeypatch: pytest.MonkeyPatch) -> None:
    called = list[Any]()
    monkeypatch.setattr(bridge, "_call", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(ray_bridge.time, "sleep", lambda _: next(iter(())))
    for node in ("not listed", "dead"):
        bridge._tries["k"].place = {"node": node}
        with pytest.raises(StopIteration):
            bridge._end_lost()
    assert called == [("lose", "k", "its node died")]


def test_the_owner_lives_on_while_there_is_no_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    bridge, called = object.__new__(RayBridge), list[str]()
    bridge._tries, bridge._changed = {}, threading.Lock()
    monkeypatch.setattr(bridge, "_call", lambda method, *_: called.append(method))
    pauses = iter([None, None])

    def sleep(seconds: float) -> None:
        assert seconds < ray_bridge.LEASE_SECONDS / 2
        next(pauses)

    monkeypatch.setattr(ray_bridge.time, "sleep", sleep)
    with pytest.raises(StopIteration):
        bridge._renew()
    assert called == ["news", "news"]


def test_no_owner_is_made_once_the_bridge_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that waits for news finds the owner ended before the process is."""
    bridge, done = object.__new__(RayBridge), list[str]()

    def fail(_: object) -> None:
        raise LookupError

    errors = SimpleNamespace(RayError=LookupError, RayActorError=LookupError)
    bridge._ray = SimpleNamespace(
        exceptions=errors, get=fail, kill=lambda _: done.append("killed"), shutdown=lambda: done.append("left")
    )
    bridge._cluster, bridge._discards, bridge._replacing = (
        SimpleNamespace(watch=lambda _: None),
        False,
        threading.Lock(),
    )
    bridge._owner = SimpleNamespace(news=SimpleNamespace(remote=lambda: None))
    monkeypatch.setattr(bridge, "_new_owner", lambda: done.append("made") or bridge._owner)
    monkeypatch.setattr(ray_bridge.os, "_exit", lambda _: None)
    monkeypatch.setattr(Bridge, "serve", lambda _: None)
    for work in ("_end_lost", "_tell_news", "_renew"):
        monkeypatch.setattr(bridge, work, lambda: None)
    bridge.serve()
    waiting = threading.Thread(target=lambda: bridge._call("news"), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert done == ["killed", "left"]
    bridge._replacing.release()
    waiting.join()
