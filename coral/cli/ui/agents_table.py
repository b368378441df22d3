"""The agents of a run as rows: what `coral status` prints once and the live view prints twice a second."""

from __future__ import annotations

from typing import TypeVar

from rich.text import Text

from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.ui.console import dim, tone
from coral.cli.ui.table import Table, table
from coral.views import format
from coral.views.format import money, spending

Cell = TypeVar("Cell")

COLUMNS = ("agent", "phase", ">launch?", ">attempts", ".best", ">stagnant", ">used?", "last beat*", "next heartbeat*??")
USED = COLUMNS.index(">used?")


def agents_table(status: LenientJson, late: float, width: int, most: int | None = None) -> Table:
    """One row per agent, at most `most`; `late` is how old the status is, in seconds."""
    agents = status.objects("agents")
    best = status.inner("best").text("agent")
    rows = [_row(agent, late, agent.text("name") == best) for agent in agents[:most]]
    columns = list(COLUMNS)
    if not any(row[USED] for row in rows):  # programs that use no model, or do not report it
        columns, rows = _without(columns), [_without(row) for row in rows]
    made = table(columns, rows, width)
    if most is not None and len(agents) > most:
        made.add_row(dim(f"… {len(agents) - most} more"))
    return made


def _without(cells: list[Cell]) -> list[Cell]:
    return [*cells[:USED], *cells[USED + 1 :]]


def _used(agent: LenientJson) -> str:
    """In money where that is known, else in tokens."""
    spent = agent.inner("spent").data
    return money(spent.get("money")) or spending(spent)


def _row(agent: LenientJson, late: float, leads: bool) -> list[object]:
    stagnant = agent.integer("stagnant")
    return [
        Text(agent.text("name"), style="bold" if leads else ""),
        tone(agent.text("phase")),
        agent.text("launch"),
        agent.text("attempts"),
        format.score(agent.number("best")),
        "" if stagnant is None else str(stagnant),
        _used(agent),
        _activity(agent, late),
        _next(agent),
    ]


def _activity(agent: LenientJson, late: float) -> Text:
    """The last sign of life, or why the agent has no process; and its jobs that run."""
    text = _sign(agent, late)
    for job in agent.objects("jobs"):
        seconds = job.number("seconds")
        age = f" {format.duration(seconds + late, units=1)}" if seconds is not None else ""
        text.append(f" · job {job.text('number')}{age}")
    return text


def _sign(agent: LenientJson, late: float) -> Text:
    beat = agent.inner("beat")
    until = agent.number("until")
    rests = agent.text("phase") in ("waiting", "parked", "retired")
    if rests or not beat:
        # The deadline of an agent at work is the end of the patience with it, which nobody waits for.
        left = f" · {format.duration(until - late)} left" if until and rests else ""
        return Text.assemble(agent.inner("reason").text("text", 80), dim(left))
    stall = agent.inner("stall").text("text", 80)
    seconds = beat.number("age")
    age = f"{format.duration(seconds + late, units=1)} " if seconds is not None else ""
    doing = " ".join(dict.fromkeys(part for part in (beat.text("phase", 40), beat.text("message", 80)) if part))
    return Text.assemble((f"{stall} · " if stall else "", "yellow"), dim(age), doing)


def _next(agent: LenientJson) -> Text:
    parts = [Text(f"{name} now", style="yellow") for name in agent.texts("owed")]
    coming = agent.objects("next")
    # A heartbeat after every attempt is no news, unless there is no other.
    later = [due for due in coming if not _is_next(due)] or coming
    parts += [Text(f"{due.text('name', 40)} {_left(due)}".strip()) for due in later]
    return Text(" · ").join(parts)


def _is_next(due: LenientJson) -> bool:
    left = due.number("left")
    return due.text("unit") == "attempts" and left is not None and left <= 1


def _left(due: LenientJson) -> str:
    """Of attempts their number alone: the name of the heartbeat says what it counts."""
    return due.text("in", 40) if due.text("unit") == "seconds" or _is_next(due) else due.text("left", 40)
