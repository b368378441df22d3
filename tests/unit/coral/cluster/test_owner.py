"""How long the owner of grades lives without a bridge; without Ray."""

import contextlib
import errno
import importlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
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
    context = SimpleNamespace(
        gcs_address=f"127.0.0.1:{head.getsockname()[1]}", get_job_id=lambda: "01",
        get_accelerator_ids=dict, get_node_id=lambda: "n1",
    )  # fmt: skip
    ray = ModuleType("ray")
    vars(ray).update(get_runtime_context=lambda: context, remote=lambda function: function)
    vars(ray).update(util=SimpleNamespace(get_node_ip_address=lambda: "10.0.0.7"))
    monkeypatch.setitem(sys.modules, "ray", ray)
    yield importlib.import_module("coral.cluster.owner")
    del sys.modules["coral.cluster.owner"]


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("error", "free", "is_told"),
    [
        (OSError(errno.ENOSPC, "no space left"), 1 << 40, True),
        (OSError(errno.EROFS, "read-only"), 1 << 40, True),
        (RuntimeError("the guard of the grade has ended"), 100, True),
        (OSError(errno.ENOENT, "no such file"), 1 << 40, False),
        (RuntimeError("the guard of the grade has ended"), 1 << 40, False),
    ],
)
def test_a_grade_that_failed_for_the_disk_of_its_node_says_so(
    owner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, free: int, is_told: bool
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    def push(key: str, event: dict[str, Any]) -> Any:
        told.append((key, event))
        return SimpleNamespace(future=lambda: SimpleNamespace(result=lambda: None))

    told = list[Any]()
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(owner.node, "grade", fail)
    monkeypatch.setattr("coral.cluster.node_report.own_folder", lambda: tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    me = SimpleNamespace(push=SimpleNamespace(remote=push))
    with contextlib.nullcontext() if is_told else pytest.raises(type(error)):
        owner.run_grade(me, "k", {}, b"", {})
    lost = {"lost": f"{type(error).__name__}: {error}", "full": "n1", "address": "10.0.0.7"}
    assert told == [("k", lost)] * is_told


def test_what_comes_of_a_grade_after_it_was_lost_does_not_count(owner: Any) -> None:
    made = owner.Owner("run", 60.0)
    made._grades["k"] = owner._Grade()
    for event in ({"lost": "its disk is full", "full": "n1"}, {"lost": "its worker ended"}):
        made.push("k", event)
    assert made.news({"k": (0, True)}, 0.0) == {"k": (0, [{"lost": "its disk is full", "full": "n1"}])}
