"""Reads the timeline, logs/events.jsonl: piece by piece for a live view, or as a whole to count events in it.

A line may be of any length. A line longer than `LONGEST` bytes is skipped, and is never held in memory as a whole.
"""

import json
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import BinaryIO

from attempts.files import open_plain
from coral.reading.lenient_json import LenientJson, parse
from workspace.layout import Layout

AT_ONCE = 8_000_000  # bytes
LONGEST = 1_000_000  # bytes of a line
MOST_AHEAD = 1_000_000  # a number further than this beyond the last is damaged: an array up to it would take the memory
RECEIVED, WITHDRAWN, SKIPPED = "heartbeat", "withdrawn", "skipped"
PUBLISHED = "published"


class Timeline:
    """Reads the events that were appended to the timeline since the last call of `new`; the first call begins at the
    byte `since`. A line without its end is left for the next call."""

    def __init__(self, layout: Layout, since: int = 0) -> None:
        self._path = layout.events
        self._offset = since

    def new(self) -> list[LenientJson]:
        try:
            with open_plain(self._path) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset = 0  # replaced by a shorter file: the run was copied or repaired
                file.seek(self._offset)
                data = file.read(AT_ONCE)
        except (OSError, ValueError):
            return []
        whole = data[: data.rfind(b"\n") + 1]
        # A line that fills the whole piece would be waited for for ever: it is skipped, piece by piece.
        self._offset += len(whole) if whole else len(data) if len(data) == AT_ONCE else 0
        return [event for event in map(parse, whole.splitlines()) if event]


def end_of(layout: Layout, most: int) -> int:
    """Return the offset in the timeline, in bytes, at which its last `most` bytes begin."""
    try:
        with open_plain(layout.events) as file:
            return max(0, os.fstat(file.fileno()).st_size - most)
    except (OSError, ValueError):
        return 0


def events(layout: Layout, *types: str, agent: str | None = None, since: int = 0) -> Iterator[LenientJson]:
    """Yield the events of these types, oldest first. `agent`: only this agent's. `since`: only from this byte of the
    timeline on. Lines of other types are skipped without being parsed."""
    return (event for _, event in events_since(layout, since, *types, agent=agent))


def events_since(
    layout: Layout, since: int, *types: str, agent: str | None = None
) -> Iterator[tuple[int, LenientJson]]:
    """Yield what `events` yields, each event with the offset in bytes at which its line ends; a later call can go on
    from there."""
    wanted = [f'"type": "{type}"'.encode() for type in types]
    of = b"" if agent is None else json.dumps(agent).encode()
    try:
        with open_plain(layout.events) as file:
            file.seek(since)
            at = since
            while line := file.readline(LONGEST):
                at += len(line)
                if not line.endswith(b"\n"):
                    at += _pass_over(file) if len(line) == LONGEST else 0
                elif of in line and any(part in line for part in wanted):
                    event = parse(line)
                    if event.data.get("type") in types and agent in (None, event.data.get("agent")):
                        yield at, event
    except (OSError, ValueError):
        return


def _pass_over(file: BinaryIO) -> int:
    """Read up to the end of the current line; return the number of bytes read."""
    passed = 0
    while rest := file.readline(LONGEST):
        passed += len(rest)
        if rest.endswith(b"\n"):
            break
    return passed


class PublishedClocks:
    """When each attempt was published, in seconds of the run's clock. `update` reads what was appended to the timeline
    since the last call. Each attempt takes eight bytes of memory."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._read_to = 0
        self._seconds = array("d")

    def update(self) -> None:
        if end_of(self._layout, 0) < self._read_to:
            self._read_to = 0  # replaced by a shorter file
        for at, event in events_since(self._layout, self._read_to, PUBLISHED):
            self._read_to = at
            number, clock = event.integer("attempt"), event.number("clock")
            if number is not None and clock is not None and 0 <= number <= len(self._seconds) + MOST_AHEAD:
                self._seconds.extend([nan] * (number + 1 - len(self._seconds)))
                if isnan(self._seconds[number]):
                    self._seconds[number] = clock

    def of(self, number: int) -> float | None:
        found = self._seconds[number] if 0 <= number < len(self._seconds) else nan
        return None if isnan(found) else found


@dataclass(slots=True)
class TimelineFigures:
    """What is counted in the timeline. `clocks`: when each attempt was first published, in seconds of the run's clock.
    `received`, `withdrawn`, `skipped`: for each heartbeat, how many of its messages agents received, how many were
    withdrawn, and how often it was due and was skipped."""

    clocks: dict[int, float] = field(default_factory=dict)
    received: Counter[str] = field(default_factory=Counter)
    withdrawn: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def counts(self) -> Mapping[str, Counter[str]]:
        return {RECEIVED: self.received, WITHDRAWN: self.withdrawn, SKIPPED: self.skipped}

    @property
    def heartbeats(self) -> list[str]:
        """The names of all heartbeats, the most frequent first."""
        return [name for name, _ in (self.received + self.withdrawn + self.skipped).most_common()]


def read_figures(layout: Layout) -> TimelineFigures:
    found = TimelineFigures()
    counts = found.counts()
    for event in events(layout, PUBLISHED, *counts):
        kind = counts.get(str(event.data.get("type")))
        if kind is not None:
            kind.update(message.text("name", 80) for message in event.objects("messages"))
        elif (number := event.integer("attempt")) is not None and (clock := event.number("clock")) is not None:
            found.clocks.setdefault(number, clock)
    return found
