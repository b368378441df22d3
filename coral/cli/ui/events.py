"""Prints the timeline for people: one line for each heartbeat, without the steps that every heartbeat takes.

With `verbose` each event is a line, also what was interrupted, ended, started again or withdrawn.
"""

from collections.abc import Mapping

from rich.text import Text

from coral.cli.ui.table import dim
from coral.fleet.reasons import ReasonKind
from coral.reading.lenient_json import LenientJson
from coral.views import format

# Events whose text says what their type is.
SELF_EVIDENT = frozenset(
    ["published", "exited", "spawned", "stalled", "crashed", "outage", "stopped", "job", "verifying", "verified"]
)
STYLES = {"alert": "yellow", "refused": "yellow", "heartbeat": "cyan", "interrupted": "cyan", "stopped": "bold"}
STEPS = frozenset(["interrupted", "exited", "withdrawn", "skipped"])
ROUTINE = frozenset([ReasonKind.HEARTBEAT, ReasonKind.PROGRESS, ReasonKind.TURN_ENDED])  # reasons of a launch
# What an agent does that has received the heartbeat; for any other heartbeat "gets NAME".
DOES: Mapping[str, str] = {
    "reflect": "reflects",
    "consolidate": "consolidates what the fleet knows",
    "redirect": "changes direction",
    "checkpoint": "goes through its checklist",
    "message": "gets a message",
    "land": "is to finish",
    "begin": "may submit from now on",
    "stalled": "is asked why it does not progress",
    "changed": "is told that the task has changed",
    "job ended": "is told that a job ended",
}


def is_step(event: LenientJson) -> bool:
    """Return whether an event is one of the steps between two attempts that say nothing by themselves."""
    kind = event.text("type", 40)
    return kind in STEPS or (kind == "spawned" and event.inner("reason").data.get("kind") in ROUTINE)


def event_line(
    event: LenientJson, *, verbose: bool = False, styles: Mapping[str, str] | None = None, narrow: bool = False
) -> Text:
    """Return an event as a line: the time on the run's clock, the agent, the text. `styles`: colours of the agents'
    names. `narrow`: without columns."""
    clock = event.number("clock")
    when = format.run_clock(clock) if clock is not None else ""
    agent = event.text("agent", 40)
    style = STYLES.get(event.text("type", 40), "")
    name = (agent if narrow else f"{agent:<9}", (styles or {}).get(agent, ""))
    return Text.assemble(
        dim(f"{when} " if narrow else f"{when:>8}  "),
        name,
        "" if narrow and not agent else " ",
        (event_text(event, verbose=verbose), style),
    )


def event_text(event: LenientJson, *, verbose: bool = False) -> str:
    """Return the text of an event, without its time and its agent."""
    number, text = event.integer("attempt"), event.text("text", 1000)
    if number is not None and not text.startswith(f"#{number}"):
        text = f"#{number} {text}"
    kind = event.text("type", 40)
    says = "" if verbose else _received(event)
    return says or ("" if kind in SELF_EVIDENT else f"{kind} ") + text


def _received(event: LenientJson) -> str:
    """Return what an agent does that has received heartbeats: `reflects on #7, consolidates what the fleet knows`.
    Empty for any other event."""
    if event.text("type", 40) != "heartbeat":
        return ""
    return ", ".join(dict.fromkeys(_does(message) for message in event.objects("messages")))


def _does(message: LenientJson) -> str:
    name, attempt = message.text("name", 60), message.integer("attempt")
    does = DOES.get(name, f"gets {name}")
    about = {"reflect": " on"}.get(name, " after")
    return does if attempt is None else f"{does}{about} #{attempt}"
