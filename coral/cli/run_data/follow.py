"""A run followed while it runs: each update reads only what is new."""

import os
from collections import deque
from collections.abc import Iterable

from attempts.files import open_plain
from attempts.index import query
from attempts.record import Kind
from coral.cli.run_data.lenient_json import LenientJson, parse
from coral.cli.run_data.run_view import RunView
from coral.views import format
from workspace.layout import Layout

KEPT = 200  # events that a screen could show
Curve = list[tuple[str, int, int, float]]  # published_at, order, number, best, wherever it rose


class Timeline:
    """Reads logs/events.jsonl, from `since` (in bytes), then from where it was last read; an unfinished line waits."""

    def __init__(self, layout: Layout, since: int = 0) -> None:
        self._path = layout.events
        self._offset = since

    def new(self) -> list[LenientJson]:
        try:
            with open_plain(self._path) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset = 0  # replaced by a shorter file: the run was copied or repaired
                file.seek(self._offset)
                data = file.read(8_000_000)
        except (OSError, ValueError):
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [event for event in map(parse, whole.splitlines()) if event]


class RunFollower:
    """What a live view shows: the latest status, the latest events, and the best score so far over seconds."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.view = RunView(layout)
        self.events: deque[LenientJson] = deque(maxlen=KEPT)
        self.points: list[tuple[float, float]] = []
        self._curve: Curve = []
        self._timeline = Timeline(layout)
        # When each attempt was published, on the run's clock, which stops while nobody supervises.
        self._clocks: dict[int, float] = {}

    def update(self) -> None:
        """Read what is new."""
        earlier = self.view
        self.view = RunView(self.layout)
        if not self.view.status and earlier.status:
            self.view = earlier  # an unreadable file for a moment must not blank the screen
        events = self._timeline.new()
        self.events.extend(events)
        published = {
            number: event.number("clock")
            for event in events
            if event.text("type") == "published" and (number := event.integer("attempt")) is not None
        }
        self._clocks |= {number: clock for number, clock in published.items() if clock is not None}
        if self._curve:
            self._extend(published)
        else:
            self._curve = self.view.index.ask(lambda rows: query.curve(rows, self.view.direction, self.view.alone))
        self.points = self._points()

    def until_now(self) -> list[tuple[float, float]]:
        """The points up to now: a fleet without improvement shows as a flat line."""
        clock, (last, best) = self.view.status.number("clock"), self.points[-1]
        return [*self.points, (clock, best)] if clock is not None and clock > last else self.points

    def _points(self) -> list[tuple[float, float]]:
        """The wall clock serves for attempts that the timeline lacks."""
        start = format.age(self.view.status.data.get("started_at"), now=0.0)
        points: list[tuple[float, float]] = []
        for at, _, number, best in self._curve:
            seconds = 0.0 if number == 0 else self._clocks.get(number)
            if seconds is None and start is not None:
                seconds = start - (format.age(at, now=0.0) or start)
            latest = points[-1][0] if points else 0.0
            points.append((max(latest, seconds or 0.0), best))
        return points

    def _extend(self, published: Iterable[int]) -> None:
        """Extend the curve by the records of attempts published since."""
        for number in published:
            attempt = self.view.attempt_or_none(number)
            if attempt is None or attempt.score is None or attempt.kind is Kind.TUNE:
                continue
            if self.view.direction.better(attempt.score, self._curve[-1][3]):
                self._curve.append((attempt.published_at, attempt.order, attempt.number, attempt.score))
