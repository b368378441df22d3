"""What the bridge to Slurm does beside the jobs, which the test plays."""

import contextlib
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coral.cluster import slurm_bridge, slurm_job, wire
from coral.cluster.bridge import RefusedError
from coral.cluster.slurm_bridge import SILENT_SECONDS, SlurmBridge, read_events

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


@pytest.fixture
def job(bridge: SlurmBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A job that runs on a node, and that the queue does not list any more."""
    submit(bridge, tmp_path, monkeypatch, lambda _: SimpleNamespace(job_id="1", stderr=lambda: ""))
    monkeypatch.setattr(bridge, "_running", lambda _: {})
    (submitted,) = bridge._jobs.values()
    (submitted.folder / slurm_job.ALIVE).touch()
    bridge._find_lost([submitted], 0.0)
    return submitted


def fail_looks(monkeypatch: pytest.MonkeyPatch, number: int, name: str) -> None:
    """From now on the disk fails with this error where a file of this name is looked at."""

    def failing(call: Any) -> Any:
        def fail(path: Path, *arguments: Any, **named: Any) -> Any:
            if path.name == name:
                raise OSError(number, os.strerror(number))
            return call(path, *arguments, **named)

        return fail

    for method in ("stat", "open"):
        monkeypatch.setattr(Path, method, failing(getattr(Path, method)))


@pytest.mark.parametrize("name", [slurm_job.ALIVE, slurm_job.EVENTS])
@pytest.mark.parametrize(("number", "is_lost"), [(errno.EIO, False), (errno.ESTALE, False), (errno.ENOENT, True)])
def test_a_look_that_tells_nothing_loses_no_job(
    bridge: SlurmBridge, job: Any, monkeypatch: pytest.MonkeyPatch, name: str, number: int, is_lost: bool
) -> None:
    with monkeypatch.context() as patched:
        fail_looks(patched, number, name)
        for now in (300.0, 600.0, 900.0):
            read_events(job)
            bridge._find_lost([job], now)
    assert bool(job.events) is is_lost
    if not is_lost:
        read_events(job)
        bridge._find_lost([job], 901.0 + SILENT_SECONDS)
        assert job.events, "it is known again"


@pytest.mark.parametrize(
    ("reading", "asking", "is_lost"),
    [(150.0, 0.0, False), (0.0, 150.0, True), (9.0, 150.0, True), (11.0, 150.0, False)],
)
def test_a_pass_that_took_long_begins_the_silence_anew(
    bridge: SlurmBridge, job: Any, monkeypatch: pytest.MonkeyPatch, reading: float, asking: float, is_lost: bool
) -> None:
    """As where the shared disk stands still. A slow answer of Slurm does not count for it."""
    seconds, passes = [1.0], iter([None, None])

    def pass_over(amount: float, answer: Any) -> Any:
        seconds[0] += amount
        return answer

    def sleep(_: float) -> None:
        job.offset = 0
        next(passes)

    monkeypatch.setattr(slurm_bridge, "time", SimpleNamespace(monotonic=lambda: seconds[0], sleep=sleep))
    monkeypatch.setattr(slurm_bridge, "read_events", lambda _: pass_over(reading, None))
    monkeypatch.setattr(bridge, "_running", lambda _: pass_over(asking, {"1": "running"}))
    monkeypatch.setattr(bridge, "present", lambda: [SimpleNamespace(key="k", tell=lambda *_: None)])
    with pytest.raises(StopIteration):
        bridge._watch()
    assert bool(job.events) is is_lost


def test_a_try_that_cannot_be_read_is_kept_for_the_next_bridge(
    job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: Path, text: str) -> None:
        assert "cannot be read" in text
        raise SystemExit

    monkeypatch.setattr(slurm_bridge, "fail", end)
    with monkeypatch.context() as patched:
        fail_looks(patched, errno.ESTALE, "key")
        with pytest.raises(SystemExit):
            SlurmBridge(tmp_path / "cluster", "local")
    assert SlurmBridge(tmp_path / "cluster", "local").keys() == ["k"]
    (job.folder / "key").unlink()
    assert SlurmBridge(tmp_path / "cluster", "local").keys() == []
    assert not job.folder.exists()


def test_a_lease_that_cannot_be_renewed_is_tried_again(bridge: SlurmBridge, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = list[Path]()

    def touch(path: Path) -> None:
        touched.append(path)
        raise OSError(errno.EIO, "Input/output error")

    pauses = iter([None])
    monkeypatch.setattr(Path, "touch", touch)
    monkeypatch.setattr(slurm_bridge.time, "sleep", lambda _: next(pauses))
    with pytest.raises(StopIteration):
        bridge._renew()
    assert touched == [bridge._lease] * 2
