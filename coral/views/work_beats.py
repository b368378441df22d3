"""Archives the beats of an agent's work outside its launches: its jobs, the grades of its attempts, its pulses.

They are in the agent's archive, with the launch 0. Agents can read that archive, so it holds no words of a grader and
nothing about grades on the hold-out.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from attempts.fields import BAD_DATA
from attempts.files import parse_object, read_end
from coral.fleet.agent_state import LIVE, JobEnd
from coral.fleet.events import Moment
from coral.fleet.reasons import JobOutcome
from coral.fleet.run_state import OCCUPYING, Fleet, Job
from coral.grading.result import beats_file, progress_of
from coral.supervisor.context import RunContext
from coral.views.format import age
from coral.views.reasons import outcome_text
from heartbeats import archive
from heartbeats.beat import Beat, Status, from_dict as beat_from_dict
from heartbeats.interval import WATCHED, WatchedLook, Watcher
from workspace.layout import Layout

LOOK_SECONDS = 15.0  # between two looks at the work of an agent, while nobody watches
END_BYTES = 16_384  # of the end of a file of beats; beats before them are too old to matter
MOST_PULSES = 5  # of an agent
MOST_KNOWN = 50  # pieces of work of an agent whose last archived beat is remembered


def latest_beats(path: Path) -> dict[tuple[str, str], Beat]:
    """Return the last beat of each (session, task) in the last END_BYTES of a file of beats."""
    latest: dict[tuple[str, str], Beat] = {}
    for line in read_end(path, END_BYTES).splitlines():
        with contextlib.suppress(*BAD_DATA):
            beat = beat_from_dict(parse_object(line))
            latest.pop((beat.session, beat.task), None)
            latest[beat.session, beat.task] = beat
    return latest


def running_pulses(layout: Layout, agent: str) -> list[Beat]:
    """Return the last beat of each pulse that is alive among the jobs and tools that the agent runs, at most
    MOST_PULSES."""
    found = latest_beats(layout.pulses(agent)).values()
    return [beat for beat in found if not beat.is_over and (age(beat.timestamp) or 0.0) <= beat.ttl][-MOST_PULSES:]


def grade_beats(layout: Layout, fleet: Fleet) -> Iterator[tuple[int, str, Beat]]:
    """Yield the number, the agent and the last beat of each attempt in grading whose grader has reported progress."""
    for number, pending in fleet.pending.items():
        if pending.step in OCCUPYING and not pending.is_holdout and (beat := progress_of(layout, number)) is not None:
            yield number, pending.submission.agent, beat


class WorkArchive:
    def __init__(self, run_context: RunContext, look: WatchedLook) -> None:
        self._context = run_context
        self._look = look
        self._watchers: dict[Path, Watcher] = {}
        self._layout = run_context.layout
        self._looked_at = float("-inf")
        self._archived: dict[str, dict[tuple[str, str], Beat]] = {}

    def look(self, fleet: Fleet, now: Moment, *, force: bool = False) -> None:
        """Archive new beats, at most every LOOK_SECONDS, or more often while somebody watches. A beat is new if
        something has changed, or after a third of its ttl. `force`: look in any case."""
        is_watched = self._look.is_watched()
        if not force and now.run_time - self._looked_at < (WATCHED if is_watched else LOOK_SECONDS):
            return
        self._looked_at = now.run_time
        if is_watched:
            self._tell_pulses(fleet)
        grades = [(agent, _of_grade(number, beat)) for number, agent, beat in grade_beats(self._layout, fleet)]
        jobs = [(job.agent, self._of_job(job, Status.RUNNING, job.title, now)) for job in fleet.jobs.values()]
        for agent in fleet.agents:
            pulses = list(latest_beats(self._layout.pulses(agent)).values())[-MOST_PULSES:]
            self._take(agent, [*pulses, *(beat for owner, beat in (*grades, *jobs) if owner == agent)])

    def _tell_pulses(self, fleet: Fleet) -> None:
        """Let the pulses of agents and grades beat more often, because somebody watches the run."""
        paths = [self._layout.pulses(agent.name) for agent in fleet.agents.values() if agent.phase in LIVE]
        grades = (number for number, pending in fleet.pending.items() if pending.step in OCCUPYING)
        paths += [beats_file(self._layout, number) for number in grades]
        self._watchers = {path: self._watchers.get(path) or Watcher(path) for path in paths}
        for watcher in self._watchers.values():
            watcher.touch()

    def job_ended(self, job: Job, end: JobEnd, now: Moment) -> None:
        """Archive the last beat of a job."""
        status = Status.SUCCESS if end.outcome is JobOutcome.SUCCEEDED else Status.ERROR
        status = Status.CANCELLED if end.reason is not None or end.outcome is JobOutcome.CANCELLED else status
        self._take(job.agent, [self._of_job(job, status, outcome_text(end), now)])

    def _take(self, agent: str, beats: Iterable[Beat]) -> None:
        path = self._layout.beats(agent)
        if agent not in self._archived:
            self._archived[agent] = latest_beats(path)  # what the previous supervisor archived is not archived again
        archived = self._archived[agent]
        for pulse_beat in beats:
            beat = replace(pulse_beat, run=self._layout.root.name, agent=agent, launch=0)
            if not _is_news(beat, archived.get((beat.session, beat.task))):
                continue
            archived.pop((beat.session, beat.task), None)  # the latest comes last
            archived[beat.session, beat.task] = beat
            with contextlib.suppress(OSError, ValueError):  # a view may be lost, as on a full disk
                archive.append(path, beat)
        for key in list(archived)[:-MOST_KNOWN]:
            del archived[key]

    def _of_job(self, job: Job, status: Status, message: str, now: Moment) -> Beat:
        return Beat(
            run="", agent=job.agent, launch=0, status=status, phase="job", progress=None, message=message,
            timestamp=now.wall_time, ttl=self._context.rules.stall, session=job.who, task=f"job {job.number}",
        )  # fmt: skip


def _of_grade(number: int, beat: Beat) -> Beat:
    return replace(beat, session=f"grade {number}", task=f"grade #{number}", phase="grading", message="")


def _is_news(beat: Beat, before: Beat | None) -> bool:
    """Return whether a beat is to be archived. `before`: the last archived beat of the same work; if there is none, a
    beat older than its ttl is ignored, since that work was over before this supervisor began."""
    now = age(beat.timestamp)
    if now is None:
        return False
    if before is None:
        return now <= beat.ttl
    changed = replace(beat, timestamp=before.timestamp) != before
    return changed or (age(before.timestamp) or 0.0) - now >= beat.ttl / 3
