"""One cluster for all tests, of a head that runs no grade and three nodes of two processors."""

import os
from collections.abc import Iterator

import pytest
from ray_cluster import RayCluster, leave_the_network


def pytest_configure() -> None:
    leave_the_network()


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path_factory.mktemp("cluster"))
    before = dict(os.environ)
    os.environ.update(made.env)
    try:
        for _ in range(3):
            made.add_node()
        yield made
    finally:
        made.close()
        for name in made.env:
            os.environ.pop(name)
        os.environ.update(before)


@pytest.fixture
def cluster(shared_cluster: RayCluster) -> Iterator[RayCluster]:
    """After each test nothing of a grade is left on any node."""
    yield shared_cluster
    shared_cluster.wait_until_idle()
