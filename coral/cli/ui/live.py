"""The live view of a run: agents, the score curve, the latest events. Twice a second, never taller than the screen.

Where standard output is no terminal: one plain line per event.
"""

import sys
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from coral.cli.commands.status import agents_table, heading, warnings
from coral.cli.run_data.follow import RunFollower, Timeline
from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.ui.plot import curve
from coral.cli.ui.table import console, dim
from coral.views import format
from workspace.layout import Layout

PERIOD = 0.5
CURVE = 7  # lines
# Events whose text says of what type they are.
SELF_EVIDENT = frozenset(["published", "exited", "spawned", "stalled", "crashed", "outage", "stopped", "job"])
STYLES = {
    "published": "",
    "alert": "yellow",
    "refused": "yellow",
    "heartbeat": "cyan",
    "interrupted": "cyan",
    "stopped": "bold",
}


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
