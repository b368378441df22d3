"""The live view of a run: whether it is getting anywhere first - the curve, new bests, what the agents concluded, what
is left - then the agents and the latest events. Twice a second, never taller than the screen.

Each update reads only what is new. Where standard output is no terminal: one plain line per event.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from attempts.index import history, query
from attempts.record import Attempt, Kind, Verdict
from coral.cli.commands.status import agents_table, heading, summary_lines, warnings
from coral.cli.ui.budgets import bars
from coral.cli.ui.curve import AGENT_STYLES, BestLine, Dot, draw
from coral.cli.ui.events import event_line, is_step
from coral.cli.ui.keys import keys
from coral.cli.ui.table import console, dim
from coral.reading.budgets import per_hour
from coral.reading.curve import times
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.reading.timeline import PUBLISHED, Timeline, end_of, read_figures
from coral.views import format
from coral.views.curve import HOUR
from coral.views.format import duration
from heartbeats.interval import Watcher
from workspace.layout import Layout
from workspace.notes import Note, latest_synthesis

KEPT = 200  # events that a screen could show
ATTEMPTS = 3000  # the latest, which are drawn as points
BestSoFar = list[tuple[str, int, float]]  # when a record proved a new best, its number, and the best from then on
PERIOD = 0.5
LATEST = 1_000_000  # bytes of the timeline, in which the events for a screen are
CURVE = 7  # lines
WIDEST = 110
LOOK_AT_NOTES = 10.0  # seconds between two looks for a new conclusion
KEY = "v shows every step"


class RunFollower:
    """What a live view shows: the latest status and events, the best score so far over seconds, and the attempts."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.view = RunView(layout)
        self.events: deque[LenientJson] = deque(maxlen=KEPT)  # those that say something by themselves
        self.all_events: deque[LenientJson] = deque(maxlen=KEPT)
        self.points: list[tuple[float, float]] = []
        self.attempts: deque[tuple[float, float, str]] = deque(maxlen=ATTEMPTS)  # seconds, score, agent
        self.conclusion: Note | None = None
        self._looked_at_notes = float("-inf")
        self._curve: BestSoFar = []
        self._is_first = True
        self._timeline = Timeline(layout, end_of(layout, LATEST))
        # When each attempt was published, on the run's clock, which stops while nobody supervises.
        self._clocks = read_figures(layout).clocks

    def update(self) -> None:
        earlier = self.view
        self.view = RunView(self.layout)
        if not self.view.status and earlier.status:
            self.view = earlier  # an unreadable file for a moment must not blank the screen
        records = [record for record in map(self.view.attempt_or_none, self._read_events()) if record is not None]
        if not self._curve or any(record.verdict is Verdict.NEW_BEST for record in records):
            self._curve = self.view.index.ask(lambda rows: query.curve(rows, self.view.alone))
        at = times(self.view, ((number, published) for published, number, _ in self._curve), self._clocks.get)
        self.points = [(at[number], best) for _, number, best in self._curve]
        self._add_attempts(records)
        if time.monotonic() - self._looked_at_notes >= LOOK_AT_NOTES:
            self._looked_at_notes = time.monotonic()
            self.conclusion = latest_synthesis(self.layout.shared)

    def until_now(self) -> list[tuple[float, float]]:
        """The points up to now: a fleet without improvement shows as a flat line."""
        clock, (last, best) = self.view.status.number("clock"), self.points[-1]
        return [*self.points, (clock, best)] if clock is not None and clock > last else self.points

    def styles(self) -> Mapping[str, str]:
        """A colour for each of the first agents."""
        names = [agent.text("name") for agent in self.view.status.objects("agents")]
        return dict(zip(names, AGENT_STYLES, strict=False))

    def _read_events(self) -> list[int]:
        """Read the new events; returns the numbers of the attempts that were published."""
        published: list[int] = []
        events = self._timeline.new()
        self.all_events.extend(events)
        self.events.extend(event for event in events if not is_step(event))
        for event in events:
            number, clock = event.integer("attempt"), event.number("clock")
            if event.text("type") == PUBLISHED and number is not None:
                published.append(number)
                if clock is not None:
                    self._clocks[number] = clock
        return published

    def _add_attempts(self, records: Iterable[Attempt]) -> None:
        """At first the latest from the index, then what was published since."""
        if self._is_first:
            self._is_first = False
            found = self.view.index.ask(lambda rows: history.graded(rows, self.view.alone, ATTEMPTS))
            at = times(self.view, ((one.number, one.published_at) for one in found), self._clocks.get)
            graded = [(at[one.number], one.score, one.agent, one.kind) for one in found]
        else:
            graded = [(self._clocks.get(one.number, 0.0), one.score, one.agent, one.kind) for one in records]
        for seconds, score, agent, kind in graded:
            if score is not None and agent and kind in (Kind.REAL, Kind.TUNE):
                self.attempts.append((seconds, score, agent))


def follow(
    layout: Layout,
    over: Callable[[], bool],
    *,
    hint: str,
    plain: bool = False,
    verbose: bool = False,
    since: int = 0,
) -> None:
    """Show the run until `over()`, and its last state once more. `hint` stands below the view. In lines, the events are
    shown from `since` on, in bytes of their file; with `verbose` every step."""
    watcher = Watcher(layout.supervisor_beats)
    if plain or not sys.stdout.isatty():
        timeline = Timeline(layout, since)

        def say() -> None:
            watcher.touch()
            for event in timeline.new():
                if verbose or not is_step(event):
                    print(event_line(event, verbose=verbose).plain, flush=True)

        _repeat(over, say, lambda seconds: time.sleep(seconds))
        return
    out, watch = console(), RunFollower(layout)
    shown = {"verbose": verbose}
    with keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:

        def show() -> None:
            watcher.touch()
            watch.update()
            live.update(frame(watch, out, f"{hint} · {KEY}", verbose=shown["verbose"]), refresh=True)

        def wait(seconds: float) -> None:
            if "v" in pressed(seconds):
                shown["verbose"] = not shown["verbose"]

        _repeat(over, show, wait)


def _repeat(over: Callable[[], bool], show: Callable[[], object], wait: Callable[[float], object]) -> None:
    """Draw the view every PERIOD seconds, and once more after the run has ended."""
    while True:
        last = over()
        show()
        if last:
            return
        wait(PERIOD)


def frame(watch: RunFollower, out: Console, hint: str, *, verbose: bool = False) -> Group:
    """What is drawn at once; what does not fit is left out: the oldest events first, then the curve, then agents."""
    width, height = out.size
    view, styles = watch.view, watch.styles()
    top = [*_top(watch, width), *warnings(view), Text("")]
    free = height - len(top) - 2
    agents = len(view.status.objects("agents"))
    shown = min(agents, max(1, free - 4 if free < CURVE + 12 else free - CURVE - 8))
    table = agents_table(view.status, view.lateness, width, shown, styles)
    free -= shown + 1 + (agents > shown)
    parts: list[object] = [_fit(line) for line in top]
    if free >= CURVE + 4 and watch.points:
        parts += [*curve(watch, min(width - 2, WIDEST), CURVE), ""]
        free -= CURVE + 2
    parts.append(table)
    if free > 2:
        parts.append("")
        events = list(watch.all_events if verbose else watch.events)[-(free - 1) :]
        parts += [_fit(event_line(event, verbose=verbose, styles=styles)) for event in events]
    return Group(*parts, dim(hint))  # type: ignore[arg-type]  # a list of several kinds of renderables


def _top(watch: RunFollower, width: int) -> list[Text]:
    """The run and its best; what was gained lately and concluded; the budgets, as many in a line as fit."""
    view = watch.view
    budgets = bars(view.status, view.lateness)
    lines = [*(summary_lines(view) if budgets else heading(view)), progress(watch)]
    for bar in budgets:
        if lines and lines[-1].plain.startswith("budget ") and lines[-1].cell_len + bar.cell_len + 3 <= width:
            lines[-1] = Text.assemble(lines[-1], "   ", bar)
        else:
            lines.append(Text.assemble("budget ", bar))
    # What ends the run and is no amount, a target or a plateau, is said in words; these come after the amounts.
    others = view.status.inner("budget").texts("lines")[len(budgets) :] if budgets else []
    return [*lines, *([Text("budget " + " · ".join(others))] if others else [])]


def progress(watch: RunFollower) -> Text:
    """Whether it is getting anywhere: new bests in the last hour, the cost of an hour, the last conclusion."""
    view = watch.view
    clock = (view.status.number("clock") or 0.0) + view.lateness
    gained = [at for at, _ in watch.points[1:]]
    recent = sum(at > clock - HOUR for at in gained)
    parts = [Text(f"{format.plural(recent, 'new best')} in the last hour", style="green" if recent else "yellow")]
    if gained:
        parts.append(Text(f"the last {duration(max(clock - gained[-1], 0.0), units=1)} ago"))
    if cost := per_hour(view.status, view.lateness):
        parts.append(Text(cost))
    if watch.conclusion is not None:
        note = watch.conclusion
        parts.append(Text.assemble("concluded ", dim(f"{format.ago(note.created)}: "), note.title))
    return Text(" · ").join(parts)


def _fit(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def curve(watch: RunFollower, width: int, height: int) -> list[Text]:
    """The best so far up to now, and the attempts in the colours of their agents."""
    points, styles = watch.until_now(), watch.styles()
    dots = [Dot(at, score, styles.get(agent, "bright_black")) for at, score, agent in watch.attempts]
    end = points[-1][0]
    return draw([BestLine(points)], dots, width, height, end, duration(end))
