"""How long the owner of grades lives without a bridge; without Ray."""

import importlib
import os
import socket
import sys
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def head() -> Iterator[socket.socket]:
    """The socket of a head that does not listen yet."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


@pytest.fixture
def owner(head: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, in a cluster with this head."""
    context = SimpleNamespace(gcs_address=f"127.0.0.1:{head.getsockname()[1]}", get_job_id=lambda: "01")
    ray = ModuleType("ray")
    vars(ray).update(get_runtime_context=lambda: context, remote=lambda function: function)
    monkeypatch.setitem(sys.modules, "ray", ray)
    yield importlib.import_module("coral.cluster.owner")
    del sys.modules["coral.cluster.owner"]


def test_the_lease_runs_only_while_the_head_is_there(
    owner: Any, head: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can renew it before."""
    codes = SimpleQueue[int]()
    monkeypatch.setattr(os, "_exit", codes.put)
    monkeypatch.setattr(owner, "SILENT_SECONDS", 0.0)
    owner.Owner("run", 1.5)
    with pytest.raises(Empty):
        codes.get(timeout=3)
    head.listen()
    assert codes.get(timeout=60) == 1
