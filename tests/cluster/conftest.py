"""One cluster for all tests, of a head that runs no grade and three nodes of two processors."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ray_cluster import RayCluster, leave_the_network
from real_runs import Run, tries
from remote_grades import GRADE, variables


def pytest_configure() -> None:
    leave_the_network()


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path_factory.mktemp("cluster"))
    try:
        with variables(made.env):
            for _ in range(3):
                made.add_node()
            yield made
    finally:
        made.close()


@pytest.fixture
def cluster(shared_cluster: RayCluster) -> Iterator[RayCluster]:
    """After each test nothing of a grade is left on any node."""
    yield shared_cluster
    shared_cluster.wait_until_idle()


@pytest.fixture
def begin(cluster: RayCluster, start: Callable[..., Run]) -> Callable[..., Run]:
    """Starts a run of scripted tries whose grades run on the cluster."""

    def begun(*values: object, executor: str = "ray", **task: Any) -> Run:
        keys = {"executor": executor, "ray.address": cluster.address, "timeout": 300}
        keys |= task.pop("grader", {})
        overrides = tuple(f"grader.{name}={value}" for name, value in keys.items())
        grade = {} if "command" in task else {"grade": GRADE}
        return start([*tries(*values), "hang"], overrides=overrides, **grade, **task)

    return begun
