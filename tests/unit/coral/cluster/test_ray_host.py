"""The actor of a launch on a node that lacks Coral; without Ray."""

import os
import runpy
import sys
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType

import pytest


def test_a_node_without_coral_says_so_and_ends_after_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setitem(sys.modules, "coral.cluster.host", None)
    monkeypatch.setattr(os, "environ", {"GIT_DIR": "x"})
    codes = SimpleQueue[int]()
    monkeypatch.setattr(os, "_exit", codes.put)
    host = runpy.run_module("coral.cluster.ray_host")["RayHost"]({"version": "9.9"}, 0.01)
    assert codes.get(timeout=10) == 1
    (ended,) = host.exchange(0, 0, 0)["events"]
    assert "the node has no Coral of version 9.9" in ended["ended"]["problem"]


def test_a_program_that_may_not_be_started_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setattr("coral.cluster.node_report.own_folder", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    describe_node = runpy.run_module("coral.cluster.ray_host")["describe_node"]
    closed, by_name = tmp_path / "closed-program", tmp_path / "bin" / "closed-program"
    closed.touch(0o600)
    assert describe_node({}, [str(closed)])["missing"] == ["closed-program"]
    by_name.parent.mkdir()
    by_name.touch(0o700)
    assert describe_node({}, [str(closed)])["missing"] == []
