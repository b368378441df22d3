"""When a cluster counts as one that runs nothing."""

import time
from pathlib import Path
from typing import Any

import pytest

from coral.cluster.ray_connection import RayConnection

HEAD = {"Alive": True, "Resources": {"memory": 1e9}}
CARDS = {"Alive": True, "Resources": {"memory": 1e9, "GPU": 8.0}}
PROCESSORS = {"Alive": True, "Resources": {"memory": 1e9, "CPU": 4.0}}
NONE = "the cluster at h:1 has no node that runs grades"


@pytest.mark.parametrize(
    ("nodes", "needs", "problem"),
    [
        ([HEAD], [{"CPU": 1, "GPU": 0}], NONE),
        ([HEAD, PROCESSORS], [{"CPU": 1, "GPU": 0}], ""),
        ([HEAD, PROCESSORS], [{"CPU": 8, "GPU": 1}], ""),  # it is too small, which each grade hears
        ([HEAD, {**PROCESSORS, "Alive": False}], [{"CPU": 1, "GPU": 0}], NONE),
        ([HEAD, CARDS], [{"CPU": 1, "GPU": 0}], NONE),
        ([HEAD, CARDS], [{"CPU": 0, "GPU": 1}], ""),
        ([HEAD, {**CARDS, "Alive": False}], [{"CPU": 0, "GPU": 1}], NONE),
        ([HEAD, CARDS], [{"CPU": 2, "GPU": 0}, {"CPU": 0, "GPU": 1}], ""),
        ([HEAD], None, ""),
    ],
)
def test_a_node_without_processors_counts_for_work_that_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: Any, needs: Any, problem: str
) -> None:
    class Ray:
        def nodes(self) -> Any:
            return nodes

    (tmp_path / "bridge.log").touch()
    monkeypatch.setattr(RayConnection, "_connect", lambda *_: Ray())
    made = RayConnection(tmp_path, "h:1", namespace="n", by_value=(), work="grades", needs=needs)
    assert made._problem(time.monotonic()) == problem
