"""The beats of agents' launches, from what their programs print and from whether they compute."""

import contextlib
from typing import Protocol

from coral.fleet.events import Moment
from coral.supervisor.context import RunContext
from heartbeats import archive
from heartbeats.beat import Beat, Status

BEAT_SECONDS = 10.0  # between two beats of a launch that goes on


class BeatenLaunch(Protocol):
    """What a beat says of a launch. `alive_at`: when it printed or was found computing last, on the run's clock."""

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

    def take(self, launch: BeatenLaunch, now: Moment) -> None:
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
