"""A beat is archived where there is something to say, and at intervals only where there was a sign of life."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from coral.fleet.events import Moment
from coral.views.beats import BEAT_SECONDS, BeatArchive
from heartbeats.archive import beats_in
from heartbeats.beat import Status


@dataclass
class Launch:
    agent: str = "agent-1"
    launch: int = 1
    session: str | None = None
    status: Status = Status.PENDING
    phase: str = ""
    message: str = ""
    progress: float | None = None
    has_output: bool = False
    alive_at: float = 0.0


class Kept:
    def __init__(self, tmp_path: Path, stall: float = 600.0) -> None:
        self.path = tmp_path / "beats.jsonl"
        layout = SimpleNamespace(root=tmp_path, beats=lambda agent: self.path)
        config = SimpleNamespace(task=SimpleNamespace(name="circles"))
        context = SimpleNamespace(layout=layout, config=config, rules=SimpleNamespace(stall=stall))
        self.archive = BeatArchive(cast(Any, context))
        self.launch = Launch()

    def at(self, clock: float, **changes: object) -> int:
        """How many beats are kept, after this was taken at that time."""
        for name, value in changes.items():
            setattr(self.launch, name, value)
        self.archive.take(self.launch, Moment(run_time=clock, wall_time=f"2030-01-01T00:00:{clock:02.0f}+00:00"))
        return len(list(beats_in(self.path)))


def test_the_first_is_of_the_launch_itself_and_a_change_is_kept_at_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.at(0) == 1
    assert kept.at(1, status=Status.RUNNING, has_output=True, phase="thinking", session="s1", alive_at=1.0) == 2
    assert kept.at(2, phase="tool", message="pytest", alive_at=2.0) == 3
    assert kept.at(3, status=Status.SUCCESS) == 4
    assert kept.at(4, launch=2, status=Status.PENDING, has_output=False) == 5
    first, _, tool, *_ = beats_in(kept.path)
    assert (first.status, first.phase, first.launch, first.task) == (Status.PENDING, "starting", 1, "circles")
    assert (tool.phase, tool.message, tool.session, tool.run, tool.ttl) == ("tool", "pytest", "s1", tmp_path.name, 600)


def test_later_ones_come_at_intervals_and_none_in_silence(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.at(0) == 1
    assert kept.at(BEAT_SECONDS - 1, alive_at=5.0) == 1
    assert kept.at(BEAT_SECONDS) == 2
    assert kept.at(3 * BEAT_SECONDS) == 2  # it has printed nothing since
    assert kept.at(4 * BEAT_SECONDS, alive_at=4 * BEAT_SECONDS) == 3


def test_where_the_ttl_is_short_the_interval_is_a_third_of_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path, stall=6.0)
    assert kept.at(0) == 1
    assert kept.at(2, alive_at=2.0) == 2


def test_what_cannot_be_written_is_lost_and_breaks_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "no" / "such" / "folder")
    assert kept.at(0) == 0
