"""An agent in this process, for the tests of what surrounds its brain."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from native_agent import LocalAgent


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[LocalAgent]:
    made = LocalAgent(tmp_path / "run")
    yield made
    made.file.close()
