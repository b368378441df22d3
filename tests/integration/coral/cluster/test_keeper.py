"""Bridges that end at once, and the keeper that starts others."""

from pathlib import Path

import pytest
from real_runs import wait_until

from coral.cluster import keeper
from coral.cluster.keeper import BridgeKeeper


def test_the_pipe_of_each_bridge_that_has_ended_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open one would be closed by the garbage collector, with a warning, and at its limit the process has none."""
    monkeypatch.setattr(keeper, "find_spec", lambda name: name)
    monkeypatch.setattr(keeper, "_CALL", "'{}'")
    made = BridgeKeeper(tmp_path / "cluster", "ray")
    children = [made._child]
    for _ in range(2):
        wait_until(lambda: made._child is not children[-1], what="the next bridge")
        children.append(made._child)
    made.close()
    made._thread.join(60)
    assert [child.stdin is not None and child.stdin.closed for child in (*children, made._child)] == [True] * 4
