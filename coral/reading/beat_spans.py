"""Who was alive when: the stretches of an agent's life, from its archived beats."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from heartbeats.beat import SILENT_SECONDS, Beat


class Life(StrEnum):
    """`idle`: a launch, of which nothing is heard; `dead`: for longer than its ttl; `parked`: no launch, whether it
    rests, waits for a limit or has retired."""

    ALIVE = "alive"
    IDLE = "idle"
    DEAD = "dead"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class LifeSpan:
    """`start` and `end`: seconds since the epoch."""

    life: Life
    start: float
    end: float


def spans(beats: Iterable[Beat], until: float) -> list[LifeSpan]:
    """The spans from the first beat of a launch to `until`, without gaps; two neighbours differ in `life`."""
    joined: list[LifeSpan] = []
    for span in _pieces(sorted(_timed(beats), key=lambda item: item[0]), until):
        if joined and joined[-1].life is span.life:
            span = LifeSpan(span.life, joined.pop().start, span.end)
        joined.append(span)
    return joined


def _timed(beats: Iterable[Beat]) -> Iterator[tuple[float, Beat]]:
    for beat in beats:
        if not beat.launch:
            continue  # of a job or a grade
        try:
            yield datetime.fromisoformat(beat.timestamp).timestamp(), beat
        except (ValueError, OverflowError):
            continue  # somebody else wrote it


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
