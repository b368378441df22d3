"""A beat is archived where there is something to say, and at intervals only where there was a sign of life."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from coral.fleet.agent_state import Agent, Phase, Stall
from coral.fleet.events import Moment
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet, Job, PendingAttempt
from coral.views.beats import WAITING, BeatArchive
from heartbeats.archive import beats_in
from heartbeats.beat import Status
from heartbeats.interval import ALONE, FIRST, WATCHED, WatchedLook, Watcher


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
        context = SimpleNamespace(layout=layout, config=config, rules=Rules(stall=stall, ttl={"tool": 1.5 * stall}))
        self.archive = BeatArchive(cast(Any, context), WatchedLook(self.path))
        self.fleet = Fleet()
        self.launch = Launch()

    def at(self, clock: float, **changes: object) -> int:
        """How many beats are kept, after this was taken at that time."""
        for name, value in changes.items():
            setattr(self.launch, name, value)
        now = Moment(run_time=clock, wall_time=f"2030-01-01T00:00:{clock:02.0f}+00:00")
        self.archive.take(self.launch, self.fleet, now)
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
    assert (tool.phase, tool.message, tool.session, tool.run, tool.ttl) == ("tool", "pytest", "s1", tmp_path.name, 900)


def test_later_ones_come_more_and_more_rarely_and_none_in_silence(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.at(0) == 1
    assert kept.at(FIRST / 2, alive_at=0.5) == 1
    assert kept.at(FIRST) == 2
    assert kept.at(200) == 2  # it has printed nothing since
    assert kept.at(200, alive_at=200.0) == 3
    assert kept.at(200 + ALONE - 1, alive_at=210.0) == 3
    assert kept.at(200 + ALONE) == 4
    # A new phase begins anew.
    assert kept.at(220, has_output=True, phase="tool", alive_at=220.0) == 5
    assert kept.at(220 + FIRST, alive_at=221.0) == 6


def test_while_somebody_watches_they_come_often(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    Watcher(kept.path).touch()
    assert kept.at(0) == 1
    assert kept.at(500, alive_at=500.0) == 2
    assert kept.at(500 + WATCHED, alive_at=503.0) == 3


def test_a_launch_that_waits_for_a_grade_says_so_and_for_how_long(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.at(0, status=Status.RUNNING, has_output=True, phase="tool")
    submission = cast(Any, SimpleNamespace(agent="agent-1", id="1"))
    kept.fleet = Fleet(pending={1: PendingAttempt(number=1, submission=submission, waited_until=5000.0)})
    assert kept.at(10) == 2
    assert kept.at(6000) == 3  # it waits no longer
    kept.at(6001, status=Status.SUCCESS)
    _, waiting, tool, _ = beats_in(kept.path)
    assert (waiting.phase, waiting.ttl) == (WAITING, 900 + 4990)
    assert (tool.phase, tool.ttl) == ("tool", 900)


def test_an_agent_whose_job_runs_is_alive(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.at(0) == 1
    agent = Agent(name="agent-1", phase=Phase.RUNNING, launch=1, stall=Stall(since=0.0, progress_at=0.0))
    job = Job(number=1, agent="agent-1", argv=("train",))
    kept.fleet = Fleet(agents={"agent-1": agent}, jobs={1: job})
    assert kept.at(500) == 2
    kept.fleet = Fleet(agents={"agent-1": agent})
    assert kept.at(1000) == 2


def test_where_the_ttl_is_short_the_interval_is_a_third_of_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path, stall=6.0)
    assert kept.at(0) == 1
    assert kept.at(200, alive_at=200.0) == 2
    assert kept.at(202, alive_at=202.0) == 3


def test_what_cannot_be_written_is_lost_and_breaks_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "no" / "such" / "folder")
    assert kept.at(0) == 0
