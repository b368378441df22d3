"""Archives the beats of agents' launches, made from what their programs print and whether they compute; and writes the
supervisor's own beats to a file that `coral watch` and other programs read like that of a Pulse."""

import contextlib
from dataclasses import dataclass
from typing import Protocol

from coral.fleet.agent_state import LIVE, Phase
from coral.fleet.agents.stalls import is_excused, ttl_now
from coral.fleet.events import Moment
from coral.fleet.policy import STARTING, waits_until
from coral.fleet.run_state import OCCUPYING, Fleet
from coral.supervisor.context import RunContext
from coral.views.fleet_view import state_of
from coral.views.format import plural
from coral.views.health import SUPERVISOR_TTL
from heartbeats import archive
from heartbeats.beat import Beat, Status
from heartbeats.interval import WATCHED, WatchedLook, interval

SUPERVISOR = "supervisor"
WAITING = "waiting"  # the phase of a launch that waits for a grade
OWN_SECONDS = SUPERVISOR_TTL / 3  # while nobody watches


class ObservedLaunch(Protocol):
    """What a beat of a launch is made from. `alive_at`: when the program last printed or was found computing, in
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


@dataclass(frozen=True, slots=True)
class LastBeat:
    """The last archived beat of an agent. `key`: its phase, status and launch; `since`: when these last changed; `at`:
    when it was archived; `alive_at`: the sign of life that it reported. Times are in seconds of the run's clock."""

    key: tuple[str, Status, int]
    since: float
    at: float
    alive_at: float


class BeatArchive:
    def __init__(self, run_context: RunContext, look: WatchedLook) -> None:
        self._context = run_context
        self._look = look
        self._latest: dict[str, LastBeat] = {}

    def take(self, launch: ObservedLaunch, fleet: Fleet, now: Moment) -> None:
        """Archive a beat of a launch if its phase, status or number has changed. Otherwise archive one at intervals of
        at most a third of the ttl, if there was a sign of life since the last one or the silence is excused."""
        phase = (launch.phase or "working") if launch.has_output else STARTING
        ttl = round(ttl_now(fleet, launch.agent, phase, now.run_time, self._context.rules), 1)
        waits = waits_until(launch.agent, fleet.pending.values()) or 0.0
        if waits > now.run_time and launch.status is Status.RUNNING:
            phase = WAITING
        key = (phase, launch.status, launch.launch)
        since, before = now.run_time, self._latest.get(launch.agent)
        if before is not None and before.key == key:
            since = before.since
            pause = min(interval(now.run_time - since, is_watched=self._look.is_watched()), ttl / 3)
            is_alive = launch.alive_at > before.alive_at or _is_excused(fleet, launch.agent, now)
            if now.run_time - before.at < pause or not is_alive:
                return
        self._latest[launch.agent] = LastBeat(key, since, now.run_time, launch.alive_at)
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
    def __init__(self, run_context: RunContext, look: WatchedLook) -> None:
        self._context = run_context
        self._look = look
        self._latest: tuple[Status, str] | None = None
        self._beaten_at = float("-inf")

    def take(self, fleet: Fleet, now: Moment) -> None:
        """Write a beat of the supervisor if its status or phase has changed; otherwise one every OWN_SECONDS, or more
        often while somebody watches."""
        run = fleet.run
        phase = str(state_of(run)["state"])
        status = Status.SUCCESS if run.finished else Status.CANCELLED if run.detached_reason else Status.RUNNING
        pause = WATCHED if self._look.is_watched() else OWN_SECONDS
        if self._latest == (status, phase) and now.run_time - self._beaten_at < pause:
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
            session=SUPERVISOR,  # the same for each supervisor of the run, so that the next one continues the session
            task=SUPERVISOR,
        )
        with contextlib.suppress(OSError, ValueError):  # a view may be lost, as on a full disk
            self._context.layout.private.lstat()  # if the run folder was removed, it must not be created again
            archive.append(self._context.layout.supervisor_beats, beat)


def _is_excused(fleet: Fleet, name: str, now: Moment) -> bool:
    """Return whether the silence of a running agent is no sign of trouble, since a job of its own runs or the disk is
    full."""
    agent = fleet.agents.get(name)
    return agent is not None and agent.phase is Phase.RUNNING and is_excused(fleet, agent, now.run_time)


def _message(fleet: Fleet) -> str:
    live = sum(agent.phase in LIVE for agent in fleet.agents.values())
    grading = sum(pending.step in OCCUPYING for pending in fleet.pending.values())
    return f"{plural(live, 'agent')} at work" + (f", {plural(grading, 'grade')}" if grading else "")
