"""Draws the agents of a run as a table. A row says what an agent does now, and which heartbeats it gets next."""

from collections import Counter
from collections.abc import Mapping

from rich.text import Text

from coral.cli.ui.table import Table, dim, table, tone
from coral.fleet.reasons import ReasonKind
from coral.reading.budgets import Unknown, unknown_use, used_by
from coral.reading.lenient_json import LenientJson
from coral.views import format
from heartbeats.beat import SILENT_SECONDS

COLUMNS = (
    "agent",
    "phase",
    ">launch?",
    ">attempts",
    ".own best",
    ">stagnant",
    ">used?",
    "last beat*",
    "next heartbeat*??",
)


def agents_table(
    status: LenientJson,
    late: float,
    width: int,
    most: int | None = None,
    styles: Mapping[str, str] | None = None,
    *,
    first: int = 0,
    chosen: str = "",
) -> Table:
    """Return a table with a row for each agent, from the one at `first` on, at most `most`. `late`: the age of the
    status in seconds. `styles`: colours of the agents' names. `chosen`: the agent whose row is marked."""
    agents = status.objects("agents")
    shown = agents[first:][:most]
    best, unknown = status.inner("best").text("agent"), unknown_use(status)
    bests = format.scores([agent.number("best") for agent in shown])
    colors = [(styles or {}).get(agent.text("name"), "") for agent in shown]
    rows = [
        dict(zip(COLUMNS, _row(unknown, agent, own, late, best, color), strict=True))
        for agent, own, color in zip(shown, bests, colors, strict=True)
    ]
    # Some programs use no model, or do not report it.
    columns = [name for name in COLUMNS if name != ">used?" or any(row[name] for row in rows)]
    cells = [[row[name] for name in columns] for row in rows]
    if chosen:
        for agent, row in zip(shown, cells, strict=True):
            row[0] = _marked(row[0], is_chosen=agent.text("name") == chosen)
    made = table(columns, cells, width)
    if len(agents) > len(shown):
        made.add_row(dim(f"… {len(agents) - len(shown)} more"))
    return made


def _marked(name: object, *, is_chosen: bool) -> Text:
    """Return the name of an agent; that of the chosen one is marked, also by a character, for terminals without
    colours."""
    text = name.copy() if isinstance(name, Text) else Text(str(name))
    if is_chosen:
        text.stylize("reverse")
    return Text.assemble(("> ", "bold") if is_chosen else "  ", text)


def _row(unknown: Unknown, agent: LenientJson, own: str, late: float, best: str, style: str) -> list[object]:
    stagnant = agent.integer("stagnant")
    return [
        Text(agent.text("name"), style=f"bold {style}" if agent.text("name") == best else style),
        tone(agent.text("phase")),
        agent.text("launch"),
        agent.text("attempts"),
        own,
        "" if stagnant is None else str(stagnant),
        used_by(agent, unknown, briefly=True),
        activity(agent, late),
        coming(agent),
    ]


def activity(agent: LenientJson, late: float) -> Text:
    """Return the agent's last sign of life, or why it has no process; then its running jobs and pulses."""
    text = _sign(agent, late)
    for job in agent.objects("jobs"):
        seconds = job.number("seconds")
        age = f" {format.duration(seconds + late, units=1)}" if seconds is not None else ""
        text.append(f" · job {job.text('number')}{age}")
    for pulse in agent.objects("pulses"):
        text.append(f" · {pulse.text('task', 40)}{progress_text(pulse)}")
    return text


def _sign(agent: LenientJson, late: float) -> Text:
    beat = agent.inner("beat")
    until = agent.number("until")
    rests = agent.text("phase") in ("waiting", "parked", "retired")
    if rests or not beat:
        # The deadline of an agent at work is when it counts as stalled, which nobody waits for; at that of one whom the
        # operator holds back, nothing starts.
        starts = rests and agent.inner("reason").text("kind") not in (ReasonKind.PAUSED, ReasonKind.DISMISSED)
        left = f" · {format.duration(until - late)} left" if until and starts else ""
        if rests and (held := _held(agent.inner("held"), late)):
            return held
        return Text.assemble(agent.inner("reason").text("text", 80), dim(left))
    stall = agent.inner("stall").text("text", 80)
    seconds = beat.number("age")
    age = f"{format.duration(seconds + late, units=1)} " if seconds is not None else ""
    doing = " ".join(dict.fromkeys(part for part in (beat.text("phase", 40), beat.text("message", 80)) if part))
    silent = _SILENCES.get(beat.text("phase", 40), "") if (seconds or 0.0) + late >= SILENT_SECONDS else ""
    ttl, quiet = beat.number("ttl"), beat.number("silent")
    if ttl and quiet is not None and quiet + late > ttl / 2 and not stall:
        patience = (
            f"no sign of life for {format.duration(quiet + late, units=1)}, at most {format.duration(ttl, units=1)}"
        )
        return Text.assemble((f"suspected: {patience}", "yellow"), dim(f" · {doing}"))
    if silent and not stall:
        # Some programs repeat their requests without a word.
        return Text.assemble((f"{silent} for {age.strip()}", "yellow"), dim(f" · {doing}"))
    return Text.assemble((f"{stall} · " if stall else "", "yellow"), dim(age), doing)


def _held(held: LenientJson, late: float) -> Text | None:
    """Return which account keeps the agent from starting, why, and for how long; None if none does."""
    by, left = held.text("by"), held.number("left")
    if by not in ("limit", "crashes"):
        return None
    of = f" of {held.text('account')}" if held.text("account") else ""
    why = f"usage limit{of}" if by == "limit" else f"starts{of} are paused after crashes"
    return Text.assemble(why, dim("" if left is None else f" · {format.duration(max(left - late, 0.0))} left"))


_SILENCES = {"thinking": "nothing from its model", "starting": "nothing from its program"}


def coming(agent: LenientJson) -> Text:
    """Return the heartbeats that wait for the agent, then those that are due next."""
    pending = Counter(agent.texts("pending"))
    parts = [Text(f"{name} pending" + f" ({n})" * (n > 1), style="yellow") for name, n in pending.items()]
    coming = agent.objects("next")
    # A heartbeat after every attempt is no news, unless there is no other.
    later = [due for due in coming if not _follows_every_attempt(due)] or coming
    parts += [Text(f"{due.text('name', 40)} {_left(due)}".strip()) for due in later]
    return Text(" · ").join(parts)


def _follows_every_attempt(due: LenientJson) -> bool:
    return due.data.get("after_each") is True


def _left(due: LenientJson) -> str:
    """Return in words how far away a heartbeat is; for attempts the number alone, since the heartbeat's name says what
    is counted."""
    return due.text("in", 40) if due.text("unit") == "seconds" or _follows_every_attempt(due) else due.text("left", 40)


def progress_text(beat: LenientJson | None) -> str:
    """Return how far a grader or a pulse says that it is: ` (40 %, fold 3 of 7)`; empty if it says nothing."""
    if beat is None:
        return ""
    share = beat.number("progress")
    parts = ("" if share is None else f"{share:.0%}", beat.text("message", 60))
    text = ", ".join(part for part in parts if part)
    return f" ({text})" if text else ""
