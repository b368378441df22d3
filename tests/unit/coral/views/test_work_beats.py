"""What is done for an agent beside its launches stands in its archive, each change once."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sample import submission

from coral.fleet.agent_state import Agent, JobEnd, Phase
from coral.fleet.events import Moment
from coral.fleet.reasons import JobOutcome, Reason, ReasonKind
from coral.fleet.run_state import AttemptStep, Fleet, Job, PendingAttempt
from coral.grading.result import beats_file
from coral.views.work_beats import LOOK_SECONDS, MOST_PULSES, WorkArchive, running_pulses
from heartbeats.archive import beats_in
from heartbeats.beat import Beat, Status, to_dict
from heartbeats.interval import WATCHED, WatchedLook, Watcher
from workspace.layout import Layout


def stamp(ago: float = 0.0) -> str:
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - ago, UTC).isoformat(timespec="milliseconds")


def pulse(name: str = "train", ago: float = 0.0, **fields: Any) -> Beat:
    given = {"status": Status.RUNNING, "phase": "fold", "progress": 0.25, "message": "fold 1 of 4", **fields}
    return Beat(run="x", agent="x", launch=7, timestamp=stamp(ago), ttl=60.0, session=f"of {name}", task=name, **given)


def write(path: Path, *beats: Beat) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(to_dict(beat)) + "\n" for beat in beats)


class Kept:
    def __init__(self, root: Path) -> None:
        self.layout, self.clock, self.fleet = Layout(root), 0.0, Fleet(agents={"ann": Agent(name="ann")})
        self.layout.logs("ann").mkdir(parents=True)
        self.restart()

    def restart(self) -> None:
        context = SimpleNamespace(layout=self.layout, rules=SimpleNamespace(stall=600.0))
        self.archive = WorkArchive(cast(Any, context), WatchedLook(self.layout.supervisor_beats))

    def look(self, seconds: float = LOOK_SECONDS, ago: float = 0.0) -> list[tuple[str, str, float | None, str]]:
        self.clock += seconds
        self.archive.look(self.fleet, Moment(run_time=self.clock, wall_time=stamp(ago)))
        return self.beats()

    def beats(self) -> list[tuple[str, str, float | None, str]]:
        found = list(beats_in(self.layout.beats("ann")))
        assert {(beat.run, beat.agent, beat.launch) for beat in found} <= {(self.layout.root.name, "ann", 0)}
        return [(beat.task, beat.status.value, beat.progress, beat.message) for beat in found]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


FOLD = ("train", "running", 0.25, "fold 1 of 4")


def test_who_watches_the_run_watches_what_its_agents_run_and_sees_it_soon(kept: Kept) -> None:
    write(kept.layout.pulses("ann"), pulse())
    working = Agent(name="ann", phase=Phase.RUNNING)
    graded = PendingAttempt(number=1, submission=submission(), step=AttemptStep.GRADING)
    kept.fleet = Fleet(agents={"ann": working, "ben": Agent(name="ben")}, pending={1: graded})
    kept.layout.grading(1).mkdir(parents=True)
    kept.look()
    watched = [kept.layout.pulses("ann"), beats_file(kept.layout, 1)]
    assert not any(WatchedLook(path).is_watched() for path in watched)
    Watcher(kept.layout.supervisor_beats).touch()
    kept.restart()
    write(kept.layout.pulses("ann"), pulse(progress=0.5))
    kept.look()
    write(kept.layout.pulses("ann"), pulse(progress=0.75))
    assert [progress for _, _, progress, _ in kept.look(WATCHED)] == [0.25, 0.5, 0.75]
    assert all(WatchedLook(path).is_watched() for path in watched)
    assert not WatchedLook(kept.layout.pulses("ben")).is_watched()


def test_a_pulse_is_archived_at_each_change_and_else_at_each_third_of_its_ttl(kept: Kept) -> None:
    file = kept.layout.pulses("ann")
    write(file, pulse(ago=50))
    assert kept.look() == [FOLD]
    write(file, pulse(ago=45))
    assert kept.look() == [FOLD]
    write(file, pulse(ago=20))
    assert kept.look() == [FOLD] * 2
    write(file, pulse(status=Status.SUCCESS, progress=1.0, message=""))
    assert kept.look(1) == [FOLD] * 2  # not at each look at the fleet
    assert kept.look() == [FOLD, FOLD, ("train", "success", 1.0, "")]
    assert running_pulses(kept.layout, "ann") == []


def test_the_next_supervisor_archives_nothing_again_nor_what_was_over_long_ago(kept: Kept) -> None:
    write(kept.layout.pulses("ann"), pulse("old", ago=3600, status=Status.SUCCESS), pulse())
    assert kept.look() == [FOLD]
    kept.restart()
    assert kept.look() == [FOLD]


def test_a_flood_of_pulses_leaves_a_few_beats(kept: Kept) -> None:
    write(kept.layout.pulses("ann"), *(pulse(str(number)) for number in range(1000)))
    assert [task for task, *_ in kept.look()] == [str(number) for number in range(1000 - MOST_PULSES, 1000)]


@pytest.mark.parametrize("bad", [{"timestamp": "no time"}, {"timestamp": "9" * 50}])
def test_a_beat_without_a_time_is_not_archived(kept: Kept, bad: dict[str, Any]) -> None:
    write(kept.layout.pulses("ann"), replace(pulse(), **bad))
    assert kept.look() == []


def test_a_job_is_archived_at_its_beginning_each_third_of_the_ttl_and_at_its_end(kept: Kept) -> None:
    job = Job(number=3, agent="ann", argv=("train",), what="wide net")
    kept.fleet = replace(kept.fleet, jobs={3: job})
    running = ("job 3", "running", None, "wide net")
    assert kept.look(ago=500) == [running]
    assert kept.look(ago=310) == [running]
    assert kept.look(ago=290) == [running] * 2
    end = JobEnd(number=3, title="wide net", outcome=JobOutcome.FAILED, code=2)
    kept.archive.job_ended(job, end, Moment(run_time=kept.clock, wall_time=stamp()))
    assert kept.beats()[2:] == [("job 3", "error", None, "ended with exit code 2")]


@pytest.mark.parametrize(
    ("outcome", "reason", "status"),
    [
        (JobOutcome.SUCCEEDED, None, "success"),
        (JobOutcome.CANCELLED, None, "cancelled"),
        (JobOutcome.SIGNALLED, Reason(ReasonKind.REQUEST, detail="operator"), "cancelled"),
        (JobOutcome.SIGNALLED, None, "error"),
    ],
)
def test_how_a_job_ended_is_the_status_of_its_last_beat(
    kept: Kept, outcome: JobOutcome, reason: Reason | None, status: str
) -> None:
    job = Job(number=3, agent="ann", argv=("train",))
    end = JobEnd(number=3, title="", outcome=outcome, code=-9, reason=reason)
    kept.archive.job_ended(job, end, Moment(run_time=0.0, wall_time=stamp()))
    assert [found for _, found, *_ in kept.beats()] == [status]


def test_of_a_grade_how_far_it_is_is_archived_and_no_word_of_the_grader(kept: Kept) -> None:
    author = submission("ann")
    for number, holdout in ((1, None), (2, 1)):
        write(kept.layout.grading(number) / "beats.jsonl", pulse("hidden", message="the secret is 7"))
        attempt = PendingAttempt(number=number, submission=author, step=AttemptStep.GRADING, holdout_of=holdout)
        kept.fleet = replace(kept.fleet, pending={**kept.fleet.pending, number: attempt})
    assert kept.look() == [("grade #1", "running", 0.25, "")]
    assert b"secret" not in kept.layout.beats("ann").read_bytes()
