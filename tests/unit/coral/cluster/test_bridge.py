"""The part of a bridge that does not depend on the cluster."""

import fcntl
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coral.cluster import bridge as bridge_module, wire
from coral.cluster.bridge import Bridge, Client, DelayedError, Try, allow_many_files

MESSAGE = {"submit": "k", "seen": 0, "again": False, "order": {"attempt": 1}, "resources": {}, "began": {}}


class NoCluster(Bridge):
    """A bridge to nothing."""

    def look(self, found: dict[str, Any], *, by_nodes: bool) -> dict[str, str]:
        return {}

    def refusal(self, resources: dict[str, Any]) -> str:
        return ""

    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        pass

    def cancel(self, key: str) -> None:
        pass

    def keys(self) -> list[str]:
        return []


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (resource.RLIM_INFINITY, max(hard, number)):
        pytest.skip("this machine allows fewer descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_bridge_may_have_as_many_connections_as_the_machine_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_grade_that_is_not_taken_now_is_submitted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "DELAY_SECONDS", 0.1)
    problems = [DelayedError("the store is full"), OSError(28, "No space left on device")]

    class Full(NoCluster):
        def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
            if problems:
                raise problems.pop(0)

    here, there = socket.socketpair()
    with here, there, there.makefile("rb") as lines:
        Full(tmp_path)._take(Client(here), MESSAGE)
        assert [wire.decoded(next(lines))["waits"] for _ in range(3)] == [
            "it cannot be submitted: the store is full",
            "it cannot be submitted: [Errno 28] No space left on device",
            "",
        ]


@pytest.mark.parametrize("lowest", [3, 1100])
def test_a_client_that_waits_is_there_until_it_has_left(tmp_path: Path, lowest: int) -> None:
    here, there = socket.socketpair()
    with descriptors(2000), here, there:
        connection = socket.socket(fileno=fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, lowest))
        bridge = NoCluster(tmp_path)
        bridge._tries["k"] = Try(Client(connection), MESSAGE)
        assert bridge.is_waited_for("k", "it needs 8 GPUs", 0.1)
        there.sendall(b"x")
        assert bridge.is_waited_for("k", "it needs 8 GPUs", 0.1)
        connection.recv(1)
        there.close()
        assert not bridge.is_waited_for("k", "it needs 8 GPUs", 5)
        connection.close()


def test_a_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "SEND_SECONDS", 1)
    here, there = socket.socketpair()
    with here, there:
        Client(here).send(output=b"x" * (4 << 20))
        while there.recv(1 << 20):
            pass
