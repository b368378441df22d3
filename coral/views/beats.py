"""The beats of agents' launches, from what their programs print and from whether they compute; and the supervisor's
own, in a file that `coral watch` and other programs read as that of a Pulse."""

import contextlib
from typing import Protocol

from coral.fleet.agent_state import LIVE
from coral.fleet.events import Moment
from coral.fleet.run_state import OCCUPYING, Fleet
from coral.supervisor.context import RunContext
from coral.views.fleet_view import state_of
from coral.views.format import plural
from coral.views.health import SUPERVISOR_TTL
from heartbeats import archive
from heartbeats.beat import Beat, Status

BEAT_SECONDS = 10.0  # between two beats of a launch that goes on
SUPERVISOR = "supervisor"
OWN_SECONDS = SUPERVISOR_TTL / 3


class ObservedLaunch(Protocol):
    """The state of a launch, from which its beats are made. `alive_at`: when it last printed or was found computing, in
    seconds of the run's clock."""

    agent: str
    launch: int
    session: str | None
    status: Status
    phase: str
    message: str
    progress: float | None
    has_output: bool
    alive_at: float


class BeatArchive:
    def __init__(self, run_context: RunContext) -> None:
        self._context = run_context
        self._latest: dict[str, tuple[tuple[str, Status, int], float, float]] = {}

    def take(self, launch: ObservedLaunch, now: Moment) -> None:
        """Archive a beat when phase, status or launch have changed; else after BEAT_SECONDS or a third of the
        ttl, if there was a sign of life since."""
        ttl = self._context.rules.stall
        phase = (launch.phase or "working") if launch.has_output else "starting"
        key = (phase, launch.status, launch.launch)
        if launch.agent in self._latest:
            before, at, alive_at = self._latest[launch.agent]
            if key == before and (now.run_time - at < min(BEAT_SECONDS, ttl / 3) or launch.alive_at <= alive_at):
                return
        self._latest[launch.agent] = (key, now.run_time, launch.alive_at)
        beat = Beat(
            run=self._context.layout.root.name,
            session=launch.session or "",
            task=self._context.config.task.name,
            agent=launch.agent,
            launch=launch.launch,
            status=launch.status,
            phase=phase,
            progress=launch.progress,
            message=launch.message,
            timestamp=now.wall_time,
            ttl=ttl,
        )
        with contextlib.suppress(OSError, ValueError):  # a view may be lost, as on a full disk
            archive.append(self._context.layout.beats(launch.agent), beat)


class SupervisorBeats:
    def __init__(self, run_context: RunContext) -> None:
        self._context = run_context
        self._latest: tuple[Status, str] | None = None
        self._beaten_at = float("-inf")

    def take(self, fleet: Fleet, now: Moment) -> None:
        """Write a beat where its status or phase has changed, else every OWN_SECONDS."""
        run = fleet.run
        phase = str(state_of(run)["state"])
        status = Status.SUCCESS if run.finished else Status.CANCELLED if run.detached_reason else Status.RUNNING
        if self._latest == (status, phase) and now.run_time - self._beaten_at < OWN_SECONDS:
            return
        self._latest, self._beaten_at = (status, phase), now.run_time
        beat = Beat(
            run=self._context.layout.root.name,
            agent="",
            launch=0,
            status=status,
            phase=phase,
            progress=None,
            message=_message(fleet),
            timestamp=now.wall_time,
            ttl=SUPERVISOR_TTL,
            session=SUPERVISOR,  # of each supervisor of the run: the next one goes on
            task=SUPERVISOR,
        )
        with contextlib.suppress(OSError, ValueError):  # a view may be lost, as on a full disk
            self._context.layout.private.lstat()  # a run folder that was removed is not made again
            archive.append(self._context.layout.supervisor_beats, beat)


def _message(fleet: Fleet) -> str:
    live = sum(agent.phase in LIVE for agent in fleet.agents.values())
    grading = sum(pending.step in OCCUPYING for pending in fleet.pending.values())
    return f"{plural(live, 'agent')} at work" + (f", {plural(grading, 'grade')}" if grading else "")
