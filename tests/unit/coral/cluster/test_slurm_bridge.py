"""What the bridge to Slurm does beside the jobs, which the test plays."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import slurm_job
from coral.cluster.slurm_bridge import SlurmBridge

pytest.importorskip("submitit")


@pytest.fixture
def bridge(tmp_path: Path) -> SlurmBridge:
    (tmp_path / "cluster").mkdir()
    return SlurmBridge(tmp_path / "cluster", "local")


def submit(bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Any) -> None:
    """`job`: called with the folder of the try in the place of sbatch; returns submitit's job."""
    for name in ("candidate", "private"):
        (tmp_path / name).mkdir()
    places = {name: str(tmp_path / name) for name in ("candidate", "private")}
    executor = SimpleNamespace(submit=lambda _, place, __: job(Path(place)))
    monkeypatch.setattr(bridge, "_executor", lambda *_: executor)
    bridge.submit("k", {"attempt": 1, "timeout": 1.0, "places": places}, {})


def test_the_file_of_events_is_there_before_the_job(
    bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look before the job has made it would let the client of NFS keep in mind that there is none."""
    found = []

    def job(place: Path) -> Any:
        found.append({path.name: path.stat().st_size for path in place.iterdir()})
        return SimpleNamespace(job_id="1")

    submit(bridge, tmp_path, monkeypatch, job)
    assert found[0][slurm_job.EVENTS] == 0
    assert slurm_job.ALIVE not in found[0], "its time counts as a sign of life"
