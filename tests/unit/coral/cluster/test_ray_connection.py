"""When a cluster counts as one that runs nothing."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import ray_connection
from coral.cluster.ray_connection import ABSENT_SECONDS, ASK_SECONDS, RayConnection

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


class Task:
    """An answer of a node that a test plays."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def remote(self, *_: Any) -> Any:
        return self.answer


def test_a_node_that_does_not_answer_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class RayError(Exception):
        pass

    class GetTimeoutError(RayError):
        pass

    class RayTaskError(RayError):
        pass

    def get(answer: Any, timeout: float) -> Any:
        assert timeout <= ASK_SECONDS
        if isinstance(answer, Exception):
            raise answer
        return answer

    answers = {"n1": {"disk": 1}, "n2": GetTimeoutError("x"), "n3": RayError("it\nleft"), "n4": RayTaskError("no room")}
    errors = SimpleNamespace(RayError=RayError, GetTimeoutError=GetTimeoutError, RayTaskError=RayTaskError)
    ray = SimpleNamespace(exceptions=errors, remote=lambda function: function, get=get, nodes=list)
    (tmp_path / "bridge.log").touch()
    monkeypatch.setattr(RayConnection, "_connect", lambda *_: ray)
    monkeypatch.setattr(RayConnection, "on", lambda _, node, __: Task(answers[node]))
    made = RayConnection(tmp_path, "h:1", namespace="n", by_value=(), work="grades", needs=None)
    assert made._asked(lambda: None, dict.fromkeys(answers, ())) == [
        {"disk": 1},
        {"problem": "it did not answer within 30 s", "unknown": True},
        {"problem": "left", "unknown": True},
        {"problem": "no room", "unknown": False},
    ]


def test_the_ports_of_a_node_and_of_this_machine_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {"NodeID": one, "NodeManagerAddress": one, "NodeManagerPort": 1, "ObjectManagerPort": 2} for one in ("n1", "n2")
    ]
    context = SimpleNamespace(get_node_id=lambda: "n1")
    ray = SimpleNamespace(nodes=lambda: nodes, get_runtime_context=lambda: context)
    (tmp_path / "bridge.log").touch()
    monkeypatch.setattr(RayConnection, "_connect", lambda *_: ray)
    made = RayConnection(tmp_path, "h:1", namespace="n", by_value=(), work="grades", needs=None)
    assert made.ports("n2") == {"the raylet": "n2:1", "the object manager": "n2:2"}
    assert made.ports() == {"the raylet": "n1:1", "the object manager": "n1:2"}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns whether the node `n1` counts as dead so many seconds later, where the head then lists these nodes."""
    seconds, nodes = [0.0], list[Any]()
    (tmp_path / "bridge.log").touch()
    monkeypatch.setattr(ray_connection, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(RayConnection, "_connect", lambda *_: SimpleNamespace(nodes=lambda: list(nodes)))
    made = RayConnection(tmp_path, "h:1", namespace="n", by_value=(), work="grades", needs=None)

    def is_dead(later: float, **alive: bool) -> bool:
        seconds[0] += later
        nodes[:] = [{"NodeID": name, "Alive": lives} for name, lives in alive.items()]
        made._look()
        return made.is_dead("n1")

    return is_dead


def test_a_node_that_the_head_does_not_list_has_time_to_come_back(listed: Any) -> None:
    assert [listed(1, n1=True), listed(1, n1=False)] == [False, True]
    for _ in range(2):
        assert not any(listed(5, n2=True) for _ in range(int(ABSENT_SECONDS / 5) + 1))
        assert not listed(1, n1=True)
    assert [listed(5, n2=True) for _ in range(int(ABSENT_SECONDS / 5) + 2)][-2:] == [False, True]
    assert not listed(1, n1=True), "it came back all the same"


def test_the_time_in_which_the_head_is_away_is_not_that_of_a_node(listed: Any) -> None:
    assert not listed(1)
    assert not listed(10 * ABSENT_SECONDS)
    assert not listed(1)
    assert not any(listed(5) for _ in range(int(ABSENT_SECONDS / 5) - 1))
    assert [listed(5), listed(5)][-1]
