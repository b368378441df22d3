"""Sends what changes in a run to the open pages, by server-sent events.

For each run one task watches the files, as long as any page is open: what changed is read and written as JSON once,
however many pages there are. A check takes three calls of stat, and nothing that the supervisor waits for.
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
ANYWAY_SECONDS = 2.0  # between two reads without a changed file: a supervisor that dies changes none
BACKLOG = 500  # messages that a page may be behind; then it has to connect again
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
        self._starting = asyncio.Lock()  # pages that connect at once share one task and its reader
        self._reader = FeedReader(layout)
        self._watcher = Watcher(layout.supervisor_beats)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the present state of the run, then every change, until the page leaves or has BACKLOG messages not yet
        sent."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue(BACKLOG)
        self._pages.add(queue)
        try:
            async with self._starting:
                if self._task is None or self._task.done():
                    await asyncio.to_thread(self._reader.skip)
                    self._task = asyncio.create_task(self._watch())
            # What happens meanwhile is also in the queue; the page shows each event only once.
            for message in await asyncio.to_thread(first_messages, self._layout):
                yield message
            while (news := await queue.get()) is not None:
                yield news
        finally:
            self._pages.discard(queue)

    def end(self) -> None:
        """End the connections of all pages in order: the server stops."""
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
            self.end()  # nothing would be sent to these pages any more: they connect again

    def _send(self, messages: list[Message]) -> None:
        for queue in list(self._pages):
            try:
                for message in messages:
                    queue.put_nowait(message)
            except asyncio.QueueFull:  # the page is asleep: it connects again when it wakes
                self._end(queue)

    def _end(self, queue: asyncio.Queue[Message | None]) -> None:
        self._pages.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


@dataclass
class FeedReader:
    """Reads what has changed in a run since the last call."""

    layout: Layout
    _timeline: Timeline | None = None
    _fleet: str = ""
    _unread: dict[int, float] = field(default_factory=dict)  # attempts without a record yet: when published

    def skip(self) -> None:
        """Skip what is in the timeline by now: each page reads that itself when it is opened."""
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
    """Return the present state of a run: the fleet, and the last events of the timeline."""
    with opened(layout) as view:
        fleet = fleet_json(layout, view)
    lines = Timeline(layout, end_of(layout, FIRST_EVENTS)).new()[-FIRST_SHOWN:]
    return [
        ("fleet", fleet),
        ("events", to_json([fleet_data.event(line) for line in lines])),
    ]


def fleet_json(layout: Layout, view: RunView) -> str:
    """Return the data of the fleet page, or a message if the run's folder is gone or cannot be read."""
    if not layout.attempts.is_dir():
        return to_json({"gone": f"the folder of this run is gone: {layout.root}"})
    try:
        return to_json(fleet_data.fleet(view))
    except (CoralError, OSError, ValueError) as error:
        return to_json({"gone": f"this run cannot be read: {error}"})


def signature(layout: Layout) -> Signature:
    """Return a value that changes whenever the status, an event or a record is published."""
    found = []
    for path in (layout.status, layout.events, layout.attempts):
        state = (0, 0, 0)
        with suppress(OSError):
            seen = os.stat(path)  # noqa: PTH116 - 25 times a second
            state = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        found.append(state)
    return tuple(found)


def to_json(data: object) -> str:
    """Return JSON on one line, as a server-sent event needs it. It is ASCII, so that half of a surrogate pair in a text
    can be encoded."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
