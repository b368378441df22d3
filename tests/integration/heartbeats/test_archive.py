"""An archive keeps beats in their order, compressed and bounded, whatever somebody else has put in its place."""

import contextlib
import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from heartbeats import archive
from heartbeats.beat import Beat, Status

BEAT = Beat(
    run="r",
    agent="agent-1",
    launch=1,
    status=Status.RUNNING,
    phase="tool",
    progress=None,
    message="",
    timestamp="2030-01-01T12:00:00+00:00",
    ttl=60.0,
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(archive, "FILE_BYTES", 1000)
    monkeypatch.setattr(archive, "KEPT", 3)
    return tmp_path / "beats.jsonl"


def append(path: Path, *launches: int) -> None:
    for launch in launches:
        archive.append(path, replace(BEAT, launch=launch))


def test_beats_come_back_in_their_order_and_the_earliest_are_dropped(path: Path) -> None:
    append(path, *range(100))
    launches = [beat.launch for beat in archive.beats_in(path)]
    assert launches == list(range(100 - len(launches), 100))
    assert 12 <= len(launches) < 30
    assert sorted(entry.name for entry in path.parent.iterdir() if entry != path) == [
        f"beats.{number}.jsonl.gz" for number in (1, 2, 3)
    ]


def test_foreign_bytes_are_passed_over(path: Path) -> None:
    append(path, 1)
    with path.open("ab") as file:
        file.write(b'\xff\xfe\n{"run": 1}\n' + b"[" * 5000 + b"\n")
    append(path, 2, 3)
    path.with_name("beats.2.jsonl.gz").write_bytes(b"no gzip")
    path.with_name("beats.3.jsonl.gz").write_bytes(gzip.compress(b"x" * 100_000)[:50])
    assert [beat.launch for beat in archive.beats_in(path)] == [1, 2, 3]


def test_it_stays_bounded_where_folders_are_in_the_way(path: Path) -> None:
    for number in (1, 2, 3):
        path.with_name(f"beats.{number}.jsonl.gz").mkdir()
        path.with_name(f"beats.{number}.jsonl.gz").joinpath("full").touch()
    for launch in range(50):
        with contextlib.suppress(OSError):
            append(path, launch)
    assert not path.exists() or path.stat().st_size < 2000
    assert [beat.launch for beat in archive.beats_in(path)][-1:] in ([49], [])


def test_what_lies_in_its_place_makes_way(path: Path) -> None:
    os.mkfifo(path)
    append(path, 1)
    assert [beat.launch for beat in archive.beats_in(path)] == [1]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert list(archive.beats_in(path)) == []
