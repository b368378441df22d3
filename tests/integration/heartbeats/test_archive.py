"""An archive keeps beats in their order, compressed and bounded, whatever somebody else has put in its place."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

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


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from heartbeats import archive
from test_archive import BEAT

archive.FILE_BYTES = 1000
for launch in range(int(sys.argv[2]), 1_000_000):
    archive.append(Path(sys.argv[1]), replace(BEAT, launch=launch))
    print(launch, flush=True)
"""


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("step", range(6))
def test_killed_at_any_step_of_a_compression_it_holds_each_beat_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Killed before the step of that number, which renames, writes or removes a file."""
    done = 0

    def killed_in(call: Callable[..., object]) -> Callable[..., object]:
        def step_of(*arguments: object, **named: object) -> object:
            nonlocal done
            done += 1
            if done > step:
                raise KilledError
            return call(*arguments, **named)

        return step_of

    append(path, *range(4))
    with monkeypatch.context() as patch, contextlib.suppress(KilledError):
        patch.setattr(Path, "replace", killed_in(Path.replace))
        patch.setattr(Path, "unlink", killed_in(Path.unlink))
        patch.setattr(archive, "write_bytes", killed_in(archive.write_bytes))
        for launch in range(4, 12):
            append(path, launch)
    last = [beat.launch for beat in archive.beats_in(path)][-1]
    assert [beat.launch for beat in archive.beats_in(path)] == list(range(last + 1))
    append(path, *range(last + 1, last + 6))
    launches = [beat.launch for beat in archive.beats_in(path)]
    assert launches == list(range(launches[0], last + 6))


def test_a_process_killed_at_random_moments_leaves_every_beat_that_it_has_written(path: Path) -> None:
    random, written = Random(13), -1
    for _ in range(8):
        command = [sys.executable, "-c", WRITER, str(path), str(written + 1)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
            assert writer.stdout is not None
            for _ in range(random.randrange(1, 12)):
                written = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            written = max([written, *map(int, writer.stdout.read().split())])
        launches = [beat.launch for beat in archive.beats_in(path)]
        # The last one may be written and not told yet.
        assert launches in (list(range(launches[0], written + end)) for end in (1, 2))
        written = launches[-1]
