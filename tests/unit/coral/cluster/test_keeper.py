"""Without the extra, a cluster is refused with the line that installs it."""

from pathlib import Path

import pytest

from coral.cluster import keeper
from coral.cluster.keeper import BridgeKeeper
from coral.errors import CoralError


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "find_spec", lambda name: None)
    with pytest.raises(CoralError) as caught:
        BridgeKeeper(tmp_path / "cluster", "127.0.0.1:6379")
    assert str(caught.value) == "cannot grade on a cluster: the package ray is missing"
    assert "ray>=" in caught.value.hint
