"""Keeps the last beat of each watched pulse, and tells whether the pulse is alive.

For how long a pulse has been silent is measured by the watcher's monotonic clock, which stands still while the machine
is suspended. Timestamps are used only at the first look, for the age of the beats that a file already holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from coral.cli.run_data.pulses import BeatSource
from coral.views import format
from heartbeats.beat import Beat, Status

MOST = 1000  # pulses that are kept; beyond that, those that are over are dropped
DEAD = "dead"
LEAST_SHARE = 0.02  # of the work; less progress is too little to estimate the rest


@dataclass(slots=True)
class WatchedPulse:
    beat: Beat
    source: BeatSource
    heard_at: float  # by the watcher's clock, as every time in this module
    asked_to_stop: bool = False
    started: tuple[float, float] | None = None  # (when its progress was first known, that progress)

    @property
    def key(self) -> tuple[int, str]:
        """A value that no other pulse has: its source and its session, or agent and task if its beats name none."""
        return id(self.source), self.beat.session or f"{self.beat.agent} {self.beat.task}"

    def state(self, now: float) -> str:
        """Return the status of the last beat, or `dead` if the pulse has been silent for longer than its ttl."""
        return DEAD if not self.beat.is_over and now - self.heard_at > self.beat.ttl else self.beat.status.value

    def left(self, now: float) -> float | None:
        """Return in how many seconds the work will be done at its pace so far; None if that is not known."""
        if self.started is None or self.beat.progress is None or self.state(now) != Status.RUNNING:
            return None
        at, share = self.started
        done = self.beat.progress - share
        return None if done < LEAST_SHARE else max((1 - self.beat.progress) * (self.heard_at - at) / done, 0.0)


@dataclass(slots=True)
class PulseBoard:
    sources: list[BeatSource]
    pulses: dict[tuple[int, str], WatchedPulse] = field(default_factory=dict)  # by its key
    _has_looked: bool = False

    def update(self, now: float) -> list[WatchedPulse]:
        """Read new beats; return the pulses whose status or phase has changed, once for each change."""
        changed: list[WatchedPulse] = []
        for source in self.sources:
            for beat in source.new():
                key = WatchedPulse(beat, source, now).key
                before = self.pulses.get(key)
                if before is not None and before.beat.is_over and not beat.is_over:
                    if beat.timestamp <= before.beat.timestamp:
                        continue  # an old beat: the end was reported already
                    del self.pulses[key]  # it has begun again, as a supervisor does in a resumed run
                earlier = None if before is None else (before.beat.status, before.beat.phase)
                pulse = self._take(key, beat, source, now)
                if earlier != (beat.status, beat.phase):
                    changed.append(WatchedPulse(beat, source, pulse.heard_at))
        self._has_looked = True
        return changed

    def _take(self, key: tuple[int, str], beat: Beat, source: BeatSource, now: float) -> WatchedPulse:
        heard_at = now if self._has_looked else now - max(format.age(beat.timestamp) or 0.0, 0.0)
        pulse = self.pulses.get(key)
        if pulse is None:
            self._forget(beat, source, now)
            pulse = self.pulses[key] = WatchedPulse(beat, source, heard_at)
        pulse.beat, pulse.heard_at = beat, heard_at
        if pulse.started is None and beat.progress is not None:
            pulse.started = (pulse.heard_at, beat.progress)
        return pulse

    def _forget(self, beat: Beat, source: BeatSource, now: float) -> None:
        """Make room for a new pulse: drop an ended or dead pulse of the same work, which was started again; and if
        there are too many, other ended or dead ones."""
        for key, old in list(self.pulses.items()):
            is_gone = old.beat.is_over or old.state(now) == DEAD
            same = old.source is source and (old.beat.task, old.beat.agent) == (beat.task, beat.agent)
            if is_gone and (same or len(self.pulses) >= MOST):
                del self.pulses[key]

    def states(self, now: float) -> list[str]:
        return [pulse.state(now) for pulse in self.pulses.values()]

    def all_ended(self, now: float) -> bool:
        """Return whether there were pulses and all of them have ended or are dead."""
        ends = {Status.SUCCESS, Status.ERROR, Status.CANCELLED, DEAD}
        return bool(self.pulses) and all(state in ends for state in self.states(now))

    def cancel(self, pulse: WatchedPulse) -> str:
        """Ask a pulse to stop. Return why that was not possible; an empty text if it was."""
        if not pulse.beat.session:
            return f"cannot cancel {pulse.beat.task}: its beats name no session"
        try:
            pulse.source.cancel(pulse.beat.session)
        except OSError as error:
            return f"cannot cancel {pulse.beat.task}: {error}"
        pulse.asked_to_stop = True
        return ""

    def data(self, now: float) -> Iterator[dict[str, object]]:
        """Yield each pulse as an object for JSON."""
        for pulse in self.pulses.values():
            beat = pulse.beat
            yield {
                "task": beat.task,
                "agent": beat.agent,
                "session": beat.session,
                "source": pulse.source.name,
                "state": pulse.state(now),
                "phase": beat.phase,
                "progress": beat.progress,
                "message": beat.message,
                "age": round(now - pulse.heard_at, 1),
                "left": pulse.left(now),
                "ttl": beat.ttl,
                "timestamp": beat.timestamp,
            }
