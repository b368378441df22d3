"""Tells open pages what changes in a run, by server-sent events.

One task for each run looks at its files while any page is open, whatever their number: what changed is read and put
into JSON once. A look is three calls of stat, and touches nothing that the supervisor waits for.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from coral.errors import CoralError
from coral.web import curve_data, fleet_data
from coral.web.reading import PUBLISHED, RunView, Timeline, end_of, opened
from heartbeats.interval import Watcher
from workspace.layout import Layout

LOOK_SECONDS = 0.04
ANYWAY_SECONDS = 2.0  # a supervisor that dies changes no file
BACKLOG = 500  # messages that a page may be behind; then it has to begin again
FIRST_EVENTS = 300_000  # bytes of the timeline, for a page that has just been opened
FIRST_SHOWN = 400  # events

Message = tuple[str, str]  # its kind, and its JSON
Signature = tuple[tuple[int, int, int], ...]


class RunFeed:
    """The changes of one run, for all pages that show it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._pages: set[asyncio.Queue[Message | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()  # pages that come at once share one task, for there is one reader
        self._reader = FeedReader(layout)
        self._watcher = Watcher(layout.supervisor_beats)

    async def messages(self) -> AsyncIterator[Message]:
        """First where the run stands, then every change, until the page leaves or falls too far behind."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue(BACKLOG)
        self._pages.add(queue)
        try:
            async with self._starting:
                if self._task is None or self._task.done():
                    await asyncio.to_thread(self._reader.skip)
                    self._task = asyncio.create_task(self._watch())
            # What happens meanwhile is in the queue as well: the page shows each event once.
            for message in await asyncio.to_thread(first_messages, self._layout):
                yield message
            while (news := await queue.get()) is not None:
                yield news
        finally:
            self._pages.discard(queue)

    def end(self) -> None:
        """Ends the connections of all pages in order: the server stops."""
        for queue in list(self._pages):
            self._end(queue)

    async def _watch(self) -> None:
        seen, looked = None, 0.0
        try:
            while self._pages:
                found = signature(self._layout)
                self._watcher.touch()
                if found != seen or time.monotonic() - looked >= ANYWAY_SECONDS:
                    seen, looked = found, time.monotonic()
                    self._send(await asyncio.to_thread(self._reader.changes))
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.end()  # nobody would tell them anything any more: they begin again

    def _send(self, messages: list[Message]) -> None:
        for queue in list(self._pages):
            try:
                for message in messages:
                    queue.put_nowait(message)
            except asyncio.QueueFull:  # the page is asleep: its connection ends, and it begins again when it wakes
                self._end(queue)

    def _end(self, queue: asyncio.Queue[Message | None]) -> None:
        self._pages.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


@dataclass
class FeedReader:
    """Reads what is new in a run since it was last asked."""

    layout: Layout
    _timeline: Timeline | None = None
    _fleet: str = ""
    _unread: dict[int, float] = field(default_factory=dict)  # published, and its record not found yet

    def skip(self) -> None:
        """Leave out what is in the timeline by now: each page has read it when it was opened."""
        self._timeline = Timeline(self.layout, end_of(self.layout, 0))

    def changes(self) -> list[Message]:
        timeline = self._timeline = self._timeline or Timeline(self.layout, end_of(self.layout, 0))
        messages = list[Message]()
        for line in timeline.new():
            messages.append(("event", to_json(fleet_data.event(line))))
            number, clock = line.integer("attempt"), line.number("clock")
            if line.text("type") == PUBLISHED and number is not None:
                self._unread[number] = clock or 0.0
        with opened(self.layout) as view:
            messages += self._points(view)
            fleet = fleet_json(self.layout, view)
        if fleet != self._fleet:
            self._fleet = fleet
            messages.append(("fleet", fleet))
        return messages

    def _points(self, view: RunView) -> list[Message]:
        found = []
        for number, clock in list(self._unread.items()):
            if view.store.find(number) is not None:
                del self._unread[number]
                point = curve_data.point(view, number, clock)
                found += [] if point is None else [("point", to_json(point))]
        return found


def first_messages(layout: Layout) -> list[Message]:
    """Where the run stands: the fleet, and the end of the timeline."""
    with opened(layout) as view:
        fleet = fleet_json(layout, view)
    lines = Timeline(layout, end_of(layout, FIRST_EVENTS)).new()[-FIRST_SHOWN:]
    return [
        ("fleet", fleet),
        ("events", to_json([fleet_data.event(line) for line in lines])),
    ]


def fleet_json(layout: Layout, view: RunView) -> str:
    """The fleet's page, or what is the matter with the run's folder."""
    if not layout.attempts.is_dir():
        return to_json({"gone": f"the folder of this run is gone: {layout.root}"})
    try:
        return to_json(fleet_data.fleet(view))
    except (CoralError, OSError, ValueError) as error:
        return to_json({"gone": f"this run cannot be read: {error}"})


def signature(layout: Layout) -> Signature:
    """Differs whenever something was published: the status, an event, a record."""
    found = []
    for path in (layout.status, layout.events, layout.attempts):
        state = (0, 0, 0)
        with suppress(OSError):
            seen = os.stat(path)  # noqa: PTH116 - 25 times a second
            state = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        found.append(state)
    return tuple(found)


def to_json(data: object) -> str:
    """On one line, as an event needs it; half a surrogate pair, which JSON could hold, is replaced."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
