"""One cluster for all tests, of a head that runs no grade and three nodes of two processors."""

from collections.abc import Iterator

import pytest
from ray_cluster import RayCluster, leave_the_network
from remote_grades import variables


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
