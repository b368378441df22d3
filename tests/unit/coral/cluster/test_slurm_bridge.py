"""What the bridge to Slurm does beside the jobs, which the test plays."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import slurm_job, wire
from coral.cluster.bridge import RefusedError
from coral.cluster.slurm_bridge import SlurmBridge, read_events

pytest.importorskip("submitit")


@pytest.fixture
def bridge(tmp_path: Path) -> SlurmBridge:
    (tmp_path / "cluster").mkdir()
    return SlurmBridge(tmp_path / "cluster", "local")


def submit(bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Any) -> None:
    """`job`: called with the folder of the try in the place of sbatch; returns submitit's job."""
    for name in ("candidate", "private"):
        (tmp_path / name).mkdir(exist_ok=True)
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


@pytest.mark.parametrize("broken", [b"no JSON\n", b"[1]\n", b'{"x": "\xff"}\n', b'{"\\u0000base64": "x"}\n'])
def test_an_event_that_cannot_be_read_ends_its_try_alone(
    bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bytes
) -> None:
    def job(place: Path) -> Any:
        (place / slurm_job.EVENTS).write_bytes(wire.encoded({"started": "node"}) + broken + b'{"half')
        return SimpleNamespace(job_id="1")

    submit(bridge, tmp_path, monkeypatch, job)
    (submitted,) = bridge._jobs.values()
    for _ in range(2):
        read_events(submitted)
    assert submitted.events == [{"started": "node"}, {"lost": "its job 1 has an event that cannot be read"}]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("sbatch: error: invalid partition specified: gpu", False),
        ("sbatch: error: Requested node configuration is not available", False),
        ("sbatch: error: Required partition not available (inactive or drain)", True),
        ("sbatch: error: Required node not available (down, drained or reserved)", True),
        ("sbatch: error: Invalid authentication credential", True),
        ("sbatch: error: Unable to contact slurm controller (connect failure)", True),
    ],
)
def test_what_passes_is_waited_for(
    bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, passes: bool
) -> None:
    def job(_: Path) -> Any:
        raise OSError(text)

    monkeypatch.setattr(bridge, "is_waited_for", lambda *_: False)
    with contextlib.nullcontext() if passes else pytest.raises(RefusedError, match="sbatch"):
        submit(bridge, tmp_path, monkeypatch, job)


def test_a_full_disk_leaves_no_folder(bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was submitted ends without its folder."""

    def full(path: Path, *_: Any, **__: Any) -> None:
        if path.name == "job":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("coral.cluster.slurm_bridge.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        submit(bridge, tmp_path, monkeypatch, lambda _: SimpleNamespace(job_id="1"))
    assert list((tmp_path / "cluster" / "tries").iterdir()) == []


def test_a_job_that_a_killed_bridge_submitted_has_no_folder_with_the_next(
    bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = list[Path]()

    def job(place: Path) -> Any:
        folders.append(place)
        return SimpleNamespace(job_id="1")

    submit(bridge, tmp_path, monkeypatch, job)
    (folders[0] / "job").unlink()  # the bridge is killed before it writes this
    submit(SlurmBridge(tmp_path / "cluster", "local"), tmp_path, monkeypatch, job)
    assert [folder.exists() for folder in folders] == [False, True]
