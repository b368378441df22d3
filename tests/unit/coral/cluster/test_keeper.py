"""Without the extra, a cluster is refused with the line that installs it."""

from pathlib import Path

import pytest

from coral.cluster import keeper
from coral.cluster.keeper import BridgeKeeper
from coral.errors import CoralError


@pytest.mark.parametrize(("executor", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, package: str
) -> None:
    monkeypatch.setattr(keeper, "find_spec", lambda name: None)
    with pytest.raises(CoralError) as caught:
        BridgeKeeper(tmp_path / "cluster", executor, "127.0.0.1:6379")
    assert str(caught.value) == f"cannot use a cluster: the package {package} is missing"
    assert f"{package}>=" in caught.value.hint
