"""Draws when each agent was alive, idle, dead or parked: a line for each agent."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from coral.cli.ui.table import dim
from coral.reading.beat_spans import Life, LifeSpan
from coral.views import format

JUST_NOW = 1.5  # seconds
SIGNS = {Life.ALIVE: ("█", "green"), Life.IDLE: ("▒", "yellow"), Life.DEAD: ("×", "red"), Life.PARKED: ("·", "dim")}


def life_lines(agents: Mapping[str, Sequence[LifeSpan]], until: float, now: float, width: int) -> list[Text]:
    """Return a line for each agent, an axis and a legend. Each character stands for an equal part of the time from the
    first beat until `until`, which is before `now` where the run is over. It shows in which state the agent was for
    most of that part; but any part in which it was dead is shown as dead."""
    start = min((spans[0].start for spans in agents.values() if spans), default=until)
    names = max((len(name) for name in agents), default=0)
    columns = max(min(width - names - 2, 120), 10)
    step = max(until - start, 1.0) / columns
    lines = []
    for name, spans in agents.items():
        line = Text(f"{name:<{names}}  ")
        for column in range(columns):
            life = _life_in(spans, start + column * step, start + (column + 1) * step)
            line.append(*(SIGNS[life] if life is not None else (" ", "")))
        lines.append(line)
    first = f"{format.duration(now - start, units=1)} ago"
    last = "now" if now - until < JUST_NOW else f"{format.duration(now - until, units=1)} ago"
    axis = Text(" " * (names + 2) + f"{first}{last:>{max(columns - len(first), len(last) + 1)}}", style="dim")
    legend = Text("  ").join(Text.assemble(sign, dim(f" {life}")) for life, sign in SIGNS.items())
    return [*lines, axis, legend]


def _life_in(spans: Sequence[LifeSpan], start: float, end: float) -> Life | None:
    seconds: dict[Life, float] = {}
    for span in spans:
        overlap = min(span.end, end) - max(span.start, start)
        if overlap > 0:
            seconds[span.life] = seconds.get(span.life, 0.0) + overlap
    return Life.DEAD if Life.DEAD in seconds else max(seconds, key=seconds.__getitem__, default=None)
