"""The live view of a run: agents, the score curve, the latest events. Twice a second, never taller than the screen.

Each update reads only what is new. Where standard output is no terminal: one plain line per event.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from attempts.files import open_plain
from attempts.index import query
from attempts.record import Verdict
from coral.cli.commands.status import agents_table, heading, warnings
from coral.cli.run_data.lenient_json import LenientJson, parse
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.table import console, dim
from coral.views import format
from coral.views.format import duration, score
from workspace.layout import Layout

KEPT = 200  # events that a screen could show
Curve = list[tuple[str, int, float]]  # when a record proved a new best, its number, and the best from then on
PERIOD = 0.5
CURVE = 7  # lines
# Events whose text says of what type they are.
SELF_EVIDENT = frozenset(["published", "exited", "spawned", "stalled", "crashed", "outage", "stopped", "job"])
STYLES = {"alert": "yellow", "refused": "yellow", "heartbeat": "cyan", "interrupted": "cyan", "stopped": "bold"}
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of one braille character


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
        if not self._curve or self._is_best_among(published):
            self._read_curve()
        self.points = self._points()

    def until_now(self) -> list[tuple[float, float]]:
        """The points up to now: a fleet without improvement shows as a flat line."""
        clock, (last, best) = self.view.status.number("clock"), self.points[-1]
        return [*self.points, (clock, best)] if clock is not None and clock > last else self.points

    def _points(self) -> list[tuple[float, float]]:
        """The wall clock serves for attempts that the timeline lacks."""
        start = format.age(self.view.status.data.get("started_at"), now=0.0)
        points: list[tuple[float, float]] = []
        for at, number, best in self._curve:
            seconds = 0.0 if number == 0 else self._clocks.get(number)
            if seconds is None and start is not None:
                seconds = start - (format.age(at, now=0.0) or start)
            latest = points[-1][0] if points else 0.0
            points.append((max(latest, seconds or 0.0), best))
        return points

    def _read_curve(self) -> None:
        self._curve = self.view.index.ask(lambda rows: query.curve(rows, self.view.alone))

    def _is_best_among(self, published: Iterable[int]) -> bool:
        records = map(self.view.attempt_or_none, published)
        return any(record is not None and record.verdict is Verdict.NEW_BEST for record in records)


def follow(layout: Layout, over: Callable[[], bool], *, hint: str, plain: bool = False, since: int = 0) -> None:
    """Show the run until `over()`, and its last state once more. `hint` stands below the view. In lines, the events are
    shown from `since` on, in bytes of their file."""
    if plain or not sys.stdout.isatty():
        timeline = Timeline(layout, since)
        _repeat(over, lambda: [print(event_line(event).plain, flush=True) for event in timeline.new()])
        return
    out, watch = console(), RunFollower(layout)
    with Live(console=out, screen=True, auto_refresh=False) as live:

        def draw() -> None:
            watch.update()
            live.update(frame(watch, out, hint), refresh=True)

        _repeat(over, draw)


def _repeat(over: Callable[[], bool], draw: Callable[[], object]) -> None:
    """Draw every PERIOD, and once more after the end."""
    while True:
        last = over()
        draw()
        if last:
            return
        time.sleep(PERIOD)


def frame(watch: RunFollower, out: Console, hint: str) -> Group:
    """What is drawn at once; what does not fit is left out: the oldest events first, then the curve, then agents."""
    width, height = out.size
    view = watch.view
    top = [*heading(view), *warnings(view), Text("")]
    free = height - len(top) - 2
    agents = len(view.status.objects("agents"))
    shown = min(agents, max(1, free - 4 if free < CURVE + 12 else free - CURVE - 8))
    parts: list[object] = [*(_fit(line) for line in top), agents_table(view.status, view.lateness, width, shown)]
    free -= shown + 1 + (agents > shown)
    if free >= CURVE + 4 and watch.points:
        lines = curve(watch.until_now(), min(width - 2, 110), CURVE)
        parts += ["", *(Text(line, style="green", no_wrap=True) for line in lines)]
        free -= CURVE + 2
    if free > 2:
        parts.append("")
        parts += [_fit(event_line(event)) for event in list(watch.events)[-(free - 1) :]]
    return Group(*parts, dim(hint))  # type: ignore[arg-type]  # a list of several kinds of renderables


def event_line(event: LenientJson) -> Text:
    """One event: when on the run's clock, who, what."""
    clock = event.number("clock")
    when = format.run_clock(clock) if clock is not None else ""
    number = event.integer("attempt")
    text = event.text("text", 1000) if number is None else f"#{number} {event.text('text', 1000)}"
    kind = event.text("type", 40)
    name = "" if kind in SELF_EVIDENT else f"{kind} "
    return Text.assemble(dim(f"{when:>8}  "), f"{event.text('agent', 40):<9} ", (name + text, STYLES.get(kind, "")))


def _fit(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def curve(points: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """`height` lines of at most `width` characters, and one for the axis; `points` are (seconds, best so far) in order.
    An empty list without points, or where it would not fit."""
    low, high = min((y for _, y in points), default=0.0), max((y for _, y in points), default=0.0)
    labels = [score(_short(high)), score(_short(low))]
    margin = max(len(label) for label in labels) + 2
    columns = width - margin
    if not points or columns < 8 or height < 2:
        return []
    grid = _staircase(points, columns * 2, height * 4, low, high)
    names = {0: labels[0], height - 1: labels[1] if high > low else ""}
    lines = []
    for row, line in enumerate(grid):
        name = names.get(row, "")
        dots = "".join(chr(0x2800 + bits) for bits in line)
        lines.append(f"{name:>{margin - 2}} {'┤' if name else '│'}{dots}")
    end = duration(points[-1][0])
    return [*lines, " " * (margin - 1) + "└0" + end.rjust(columns - 1, "─")]


def _staircase(
    points: Sequence[tuple[float, float]], across: int, down: int, low: float, high: float
) -> list[list[int]]:
    """The dots, as braille bits [line][character]; `across` and `down` count dots."""
    grid = [[0] * (across // 2) for _ in range(down // 4)]
    first, last = points[0][0], points[-1][0]
    before = None
    at = 0
    for x in range(across):
        now = first + (last - first) * (x + 1) / across
        while at + 1 < len(points) and points[at + 1][0] <= now:
            at += 1
        # In quarters: the whole range of floats is more than a float can hold.
        share = (high / 4 - points[at][1] / 4) / (high / 4 - low / 4) if high / 4 > low / 4 else 0.5
        y = round(share * (down - 1))
        for dot in range(min(y, y if before is None else before), max(y, y if before is None else before) + 1):
            grid[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        before = y
    return grid


def _short(value: float) -> float:
    """Six significant digits are enough beside an axis."""
    return float(f"{value:.6g}")
