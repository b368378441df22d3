"""When a job of Slurm ends by itself."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from coral.cluster import slurm_job
from coral.cluster.slurm_job import LOOK_SECONDS

LEASE = 120.0


class EndedError(Exception):
    """The job has ended."""


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """Returns the seconds that a job lives whose bridge renews nothing. What is given is done before its looks."""
    place, seconds = tmp_path / "tries" / "1", [0.0]
    place.mkdir(parents=True)
    (tmp_path / slurm_job.LEASE).touch()

    def end(_: int) -> None:
        raise EndedError

    def sleep(pause: float) -> None:
        seconds[0] += pause

    def lived(look: Callable[[Path, list[float]], None]) -> float:
        stat = Path.stat

        def looked(path: Path, **named: bool) -> os.stat_result:
            if path == place:
                look(place, seconds)
            return stat(path, **named)

        monkeypatch.setattr(Path, "stat", looked)
        with pytest.raises(EndedError):
            slurm_job._watch(place, LEASE)
        return seconds[0]

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(slurm_job, "time", SimpleNamespace(monotonic=lambda: seconds[0], sleep=sleep))
    return lived


def test_it_ends_with_its_lease_and_when_its_folder_is_gone(lives: Callable[..., float]) -> None:
    assert LEASE < lives(lambda *_: None) <= LEASE + 2 * LOOK_SECONDS
    assert lives(lambda place, _: shutil.rmtree(place)) <= LEASE + 2 * LOOK_SECONDS, "at once"


def test_a_disk_that_stood_still_does_not_use_up_its_lease(lives: Callable[..., float]) -> None:
    def stall(_: Path, seconds: list[float]) -> None:
        if seconds[0] == 10 * LOOK_SECONDS:
            seconds[0] += 600

    assert lives(stall) > 600 + LEASE


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_look_that_tells_nothing_does_not_end_it(lives: Callable[..., float], number: int) -> None:
    def fail(_: Path, seconds: list[float]) -> None:
        if seconds[0] < 600:
            raise OSError(number, os.strerror(number))

    assert lives(fail) > 600 + LEASE / 2
