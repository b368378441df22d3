"""A run followed as it goes: each look reads what is new, so a look costs what happened since the last one."""

from __future__ import annotations

import json
from collections import deque

from attempts import board
from attempts.record import Attempt
from attempts.store import Store, StoreError
from coral.cli import words
from coral.cli.loose import Loose
from coral.cli.reading import Reading
from workspace.layout import Layout

KEPT = 200  # events that a screen could show


class Timeline:
    """logs/events.jsonl from where it was last read; a line that is still being written waits for the next look."""

    def __init__(self, layout: Layout, *, from_now: bool = False) -> None:
        self._path = layout.events
        self._offset = self._size() if from_now else 0

    def new(self) -> list[Loose]:
        try:
            with self._path.open("rb") as file:
                if self._size() < self._offset:
                    self._offset = 0  # replaced by a shorter file: a run that was copied or mended
                file.seek(self._offset)
                data = file.read(8_000_000)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [event for event in map(_event, whole.splitlines()) if event]

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0


class Watch:
    """What a live view shows: the latest status, the latest events, and the score curve so far."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.reading = Reading(layout)
        self.events: deque[Loose] = deque(maxlen=KEPT)
        self.points: list[tuple[float, float]] = []
        self._store = Store(layout.attempts)
        self._timeline = Timeline(layout)
        self._attempts: dict[int, Attempt] = {}

    def look(self) -> None:
        """Read what is new."""
        before = self.reading
        self.reading = Reading(self.layout)
        if not self.reading.status and before.status:
            self.reading = before  # a moment of trouble on the disk must not blank the screen
        self.events.extend(self._timeline.new())
        fresh = [number for number in self._store.numbers() if number not in self._attempts]
        for number in fresh:
            try:
                self._attempts[number] = self._store.read(number)
            except (StoreError, OSError):
                continue
        if fresh:
            self.points = curve_points(self.reading, list(self._attempts.values()))


def curve_points(reading: Reading, attempts: list[Attempt]) -> list[tuple[float, float]]:
    """The best score so far over the seconds since the first record."""
    points: list[tuple[float, float]] = []
    first: float | None = None
    for at, _, best in board.curve(attempts, reading.direction):
        seconds = words.age(at, now=0.0)
        if seconds is None:
            continue
        first = -seconds if first is None else first
        points.append((-seconds - first, best))
    return points


def _event(line: bytes) -> Loose:
    try:
        return Loose(json.loads(line))
    except (ValueError, RecursionError):
        return Loose()
