"""Shows pulses: a table with a row for each, and one pulse as a line of words."""

from rich.console import Console, Group
from rich.text import Text

from coral.cli.run_data.pulse_board import DEAD, PulseBoard, WatchedPulse
from coral.cli.ui.bar import bar
from coral.cli.ui.table import dim, table
from coral.views import format
from heartbeats.beat import Status

WIDTH = 20  # characters of a bar
SETTLING = 3.0  # seconds of silence below which "now" is shown
STYLES = {Status.SUCCESS: "green", Status.ERROR: "red", DEAD: "red", Status.RUNNING: "default"}
COLUMNS = ("", "task*", "state", "progress", "phase*?", "message*", ">left?", ">last beat")


def pulses_table(board: PulseBoard, now: float, out: Console, chosen: int | None, foot: str) -> Group:
    """Return a table of the pulses, as many as fit around the one at `chosen`, all of them if that is None; below it
    `foot`."""
    pulses = list(board.pulses.values())
    fits = len(pulses) if chosen is None else max(out.height - 3, 1)
    first = 0 if chosen is None else min(max(chosen - fits + 1, 0), max(len(pulses) - fits, 0))
    rows = [
        [Text("›" if place == chosen else " "), *_cells(pulse, now)]
        for place, pulse in enumerate(pulses[first : first + fits], first)
    ]
    parts = [table(COLUMNS, rows, out.width)] if rows else []
    hidden = len(pulses) - len(rows)
    more = [dim(f"and {hidden} more")] if hidden else []
    waiting = [dim("no beats yet")] if chosen is not None and not rows else []
    return Group(*parts, *more, *waiting, *([dim(foot)] if foot else []))


def pulse_line(pulse: WatchedPulse, now: float) -> Text:
    beat = pulse.beat
    share = "" if beat.progress is None else f" {beat.progress:.0%}"
    parts = (format.line(beat.phase), format.line(beat.message))
    words = ": ".join(part for part in parts if part)
    return Text(f"{format.line(beat.task)} {_state(pulse, now)}{share}{words and f' - {words}'}")


def _cells(pulse: WatchedPulse, now: float) -> list[Text]:
    beat, state = pulse.beat, pulse.state(now)
    style = STYLES.get(state, "yellow")
    progress = Text("")
    if beat.progress is not None:
        progress = Text.assemble(
            bar(beat.progress, WIDTH, "green" if style == "default" else style), f" {beat.progress:4.0%}"
        )
    age, left = now - pulse.heard_at, pulse.left(now)
    return [
        Text(format.line(beat.task)),
        Text(_state(pulse, now), style),
        progress,
        Text(format.line(beat.phase)),
        Text(format.line(beat.message)),
        Text("" if left is None else f"~{format.duration(left, units=1)}"),
        Text("now" if age < SETTLING else f"{format.duration(age, units=1)} ago", style if state == DEAD else "dim"),
    ]


def _state(pulse: WatchedPulse, now: float) -> str:
    return "stopping" if pulse.asked_to_stop and not pulse.beat.is_over else pulse.state(now)
