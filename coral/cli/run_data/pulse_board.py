"""What is known of the pulses that somebody watches: the last beat of each, and whether it is alive.

How long a pulse is silent is measured by the watcher's monotonic clock, which stands while the machine is suspended.
Timestamps only say how old the beats are that a file holds already at the first look.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from coral.cli.run_data.pulses import BeatSource
from coral.views import format
from heartbeats.beat import Beat, Status

MOST = 1000  # pulses that are kept; of those that are over, the first ones go first
DEAD = "dead"
LEAST_SHARE = 0.02  # of the work, below which an estimate of what is left would be a guess


@dataclass(slots=True)
class WatchedPulse:
    beat: Beat
    source: BeatSource
    heard_at: float  # on the watcher's clock, as every time here
    asked_to_stop: bool = False
    started: tuple[float, float] | None = None  # when its progress was first known, and what it was

    def state(self, now: float) -> str:
        """Its status, or that it is dead: silent for longer than its ttl."""
        return DEAD if not self.beat.is_over and now - self.heard_at > self.beat.ttl else self.beat.status.value

    def left(self, now: float) -> float | None:
        """Seconds until it is done, at its pace so far; None where that is not known."""
        if self.started is None or self.beat.progress is None or self.state(now) != Status.RUNNING:
            return None
        at, share = self.started
        done = self.beat.progress - share
        return None if done < LEAST_SHARE else max((1 - self.beat.progress) * (self.heard_at - at) / done, 0.0)


@dataclass(slots=True)
class PulseBoard:
    sources: list[BeatSource]
    pulses: dict[tuple[int, str], WatchedPulse] = field(default_factory=dict)  # by place of the source and session
    _has_looked: bool = False

    def update(self, now: float) -> list[WatchedPulse]:
        """Take in what is new; returns the pulses whose state or phase has changed, once for each change."""
        changed: list[WatchedPulse] = []
        for place, source in enumerate(self.sources):
            for beat in source.new():
                key = (place, beat.session or f"{beat.agent} {beat.task}")
                before = self.pulses.get(key)
                if before is not None and before.beat.is_over and not beat.is_over:
                    if beat.timestamp <= before.beat.timestamp:
                        continue  # its end was told already
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
        """Work that was started again takes the place of what is over or dead; what lives beside it stays."""
        for key, old in list(self.pulses.items()):
            is_gone = old.beat.is_over or old.state(now) == DEAD
            same = old.source is source and (old.beat.task, old.beat.agent) == (beat.task, beat.agent)
            if is_gone and (same or len(self.pulses) >= MOST):
                del self.pulses[key]

    def states(self, now: float) -> list[str]:
        return [pulse.state(now) for pulse in self.pulses.values()]

    def all_ended(self, now: float) -> bool:
        """Whether there was something to watch, and nothing of it is alive."""
        ends = {Status.SUCCESS, Status.ERROR, Status.CANCELLED, DEAD}
        return bool(self.pulses) and all(state in ends for state in self.states(now))

    def cancel(self, pulse: WatchedPulse) -> str:
        """Ask a pulse to stop; returns why that was not possible, or nothing."""
        try:
            pulse.source.cancel(pulse.beat.session)
        except OSError as error:
            return f"cannot cancel {pulse.beat.task}: {error}"
        pulse.asked_to_stop = True
        return ""

    def data(self, now: float) -> Iterator[dict[str, object]]:
        """Each pulse, for programs."""
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
