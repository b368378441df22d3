"""Computes from an agent's archived beats when it was alive, idle, dead or parked."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from heartbeats.beat import SILENT_SECONDS, Beat


class Life(StrEnum):
    """The state of an agent. `idle`: its launch has been silent for a while; `dead`: it has been silent for longer than
    the ttl of its last beat; `parked`: it has no launch, because it rests, waits for a limit or has retired."""

    ALIVE = "alive"
    IDLE = "idle"
    DEAD = "dead"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class LifeSpan:
    """A time in which an agent was in one state. `start` and `end`: seconds since the epoch."""

    life: Life
    start: float
    end: float


def spans(beats: Iterable[Beat], until: float) -> list[LifeSpan]:
    """Return the spans from the first beat of a launch to `until` (seconds since the epoch), without gaps. Beats of
    jobs and grades are ignored. Two neighbours differ in `life`."""
    joined: list[LifeSpan] = []
    for span in _pieces(sorted(_timed(beats), key=lambda item: item[0]), until):
        if joined and joined[-1].life is span.life:
            span = LifeSpan(span.life, joined.pop().start, span.end)
        joined.append(span)
    return joined


def _timed(beats: Iterable[Beat]) -> Iterator[tuple[float, Beat]]:
    for beat in beats:
        if not beat.launch:
            continue  # the beat of a job or a grade
        try:
            yield datetime.fromisoformat(beat.timestamp).timestamp(), beat
        except (ValueError, OverflowError):
            continue  # not written by Coral


def _pieces(timed: list[tuple[float, Beat]], until: float) -> Iterator[LifeSpan]:
    ends = [at for at, _ in timed[1:]] + [until]
    for (start, beat), end in zip(timed, ends, strict=False):
        if beat.is_over:
            borders = [(Life.PARKED, end)]
        else:
            quiet = min(SILENT_SECONDS, beat.ttl)
            borders = [(Life.ALIVE, start + quiet), (Life.IDLE, start + beat.ttl), (Life.DEAD, end)]
        at = start
        for life, border in borders:
            if at < (border := min(border, end)):
                yield LifeSpan(life, at, border)
                at = border
