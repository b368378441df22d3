"""The agents of a run as rows: what `coral status` prints once and the live view prints twice a second."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from coral.cli import words
from coral.cli.columns import table
from coral.cli.loose import Loose
from coral.cli.screen import dim, tone

COLUMNS = ("agent", "phase", ">launch?", ">tries", ".best", ">stagnant", "last beat*", "next heartbeat*")


def agents_table(status: Loose, late: float, width: int, most: int | None = None) -> Table:
    """One row per agent; `late` is how old the status is, in seconds; `most` caps the rows to the screen."""
    agents = status.each("agents")
    best = status.inner("best").text("agent")
    made = table(COLUMNS, [_row(agent, late, agent.text("name") == best) for agent in agents[:most]], width)
    if most is not None and len(agents) > most:
        made.add_row(dim(f"… {len(agents) - most} more"))
    return made


def _row(agent: Loose, late: float, leads: bool) -> Sequence[object]:
    stagnant = agent.integer("stagnant")
    return (
        Text(agent.text("name"), style="bold" if leads else ""),
        tone(agent.text("phase")),
        agent.text("launch"),
        agent.text("attempts"),
        words.score(agent.number("best")),
        "" if stagnant is None else str(stagnant),
        _activity(agent, late),
        _next(agent),
    )


def _activity(agent: Loose, late: float) -> Text:
    """The last sign of life, or why there is none to expect."""
    beat = agent.inner("beat")
    until = agent.number("until")
    if agent.text("phase") in ("waiting", "parked", "retired") or not beat:
        why = agent.text("why", 80)
        return Text.assemble(why, dim(f" {words.span(until)}") if until else "")
    seconds = beat.number("age")
    age = f"{words.coarse(seconds + late)} " if seconds is not None else ""
    said = " ".join(dict.fromkeys(part for part in (beat.text("phase", 40), beat.text("message", 80)) if part))
    return Text.assemble(dim(age), said)


def _next(agent: Loose) -> Text:
    owed = agent.texts("owed")
    parts = [Text(f"{name} now", style="yellow") for name in owed]
    coming = [(each.text("name", 40), each.text("in", 40)) for each in agent.each("next")]
    # What comes after every attempt anyway says nothing, unless there is nothing else.
    later = [pair for pair in coming if pair[1] != "next attempt"] or coming
    parts += [Text(f"{name} {_short(due)}".strip()) for name, due in later]
    return Text(" · ").join(parts)


def _short(due: str) -> str:
    """`3 attempts` as `3`: the name of a heartbeat tells what it counts."""
    number, _, unit = due.partition(" ")
    return due if unit in ("s", "min") or not number.isdecimal() else number
