"""Launches that Ray refuses, with Ray itself replaced."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import wire
from coral.cluster.launch_bridge import LaunchClient
from coral.cluster.ray_launch_bridge import FULL, RayLaunchBridge

NODE = {"NodeID": "n", "Alive": True, "Labels": {}, "Resources": {"CPU": 4.0, "GPU": 2.0}}


class Ray:
    """Takes whole graphics cards alone, as Ray does above one."""

    def get_actor(self, name: str) -> Any:
        raise ValueError(f"there is no {name}")

    def remote(self, _: Any) -> Any:
        return self

    def options(self, **given: Any) -> Any:
        raise ValueError(f"Quantities >1 must be whole numbers:\n{given['num_gpus']}")


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayLaunchBridge:
    ray = Ray()
    connection = SimpleNamespace(ray=ray, nodes=[NODE, {**NODE, "NodeID": "large", "Labels": {"kind": "large"}}])
    monkeypatch.setattr("coral.cluster.ray_launch_bridge.RayConnection", lambda *_, **__: connection)
    monkeypatch.setattr("coral.cluster.ray_launch_bridge.import_module", lambda _: SimpleNamespace(RayHost=None))
    return RayLaunchBridge(tmp_path, "127.0.0.1:1", [])


def test_what_ray_refuses_ends_that_launch_alone_with_the_reason(bridge: RayLaunchBridge) -> None:
    here, there = socket.socketpair()
    with here, there:
        client = LaunchClient(here)
        client.asked = {"launch": "agent-1/1", "began": False, "labels": {}, "prefers": ""}
        client.asked["resources"] = {"CPU": 1, "GPU": 1.5}
        bridge._tell_news(client)
        assert wire.decoded(there.recv(1 << 16)) == {"refused": "Ray refuses such a launch: 1.5"}
    assert client.is_answered.is_set()


@pytest.mark.parametrize(
    ("labels", "waits", "why"),
    [
        ({}, FULL, "a node has room for it"),
        ({"kind": "large"}, FULL, "it needs 2 CPUs; the node with the most has 1 free"),
        ({"kind": "small"}, FULL, FULL),
        ({}, "it is submitted", "it is submitted"),
    ],
)
def test_why_a_launch_waits_is_seen_from_what_is_free(
    bridge: RayLaunchBridge, labels: dict[str, str], waits: str, why: str
) -> None:
    def describe(found: dict[str, Any], *_: Any) -> None:
        found["nodes"] = [
            {"id": "n", "total": {}, "free": {"CPU": 2.0}},
            {"id": "large", "total": {}, "free": {"CPU": 1.0}},
        ]

    bridge._cluster.describe = describe  # type: ignore[method-assign]
    here, there = socket.socketpair()
    with here, there:
        client = LaunchClient(here)
        client.asked = {"launch": "agent-1/1", "labels": labels, "resources": {"CPU": 2, "GPU": 0}}
        client.wait_for(waits)
        bridge._clients["agent-1/1"] = client
        (shown,) = bridge.described([], by_nodes=False)["launches"]
    assert (shown["agent"], shown["waits"]) == ("agent-1", why)
