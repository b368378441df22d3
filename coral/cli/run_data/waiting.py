"""Waiting for a grade: the reply to a submission says its number, then that its record is out. Standard library only.

Neither reads status.json, and a sealed agent does without `private`. The submission stays whatever becomes of the wait.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from attempts.files import read_bytes
from attempts.record import Attempt
from attempts.store import Store, StoreError
from coral.cli.run_data.lenient_json import LenientJson, read
from coral.cli.run_data.send_request import pauses, unsupervised
from workspace.layout import Layout

TOOL_SECONDS = 540.0  # agent programs cut a tool off after ten minutes; where it is less, CORAL_TOOL_SECONDS says so
SETTLE = 2.0  # seconds that a record, once out, waits for the reply that names the heartbeats which follow
DOUBT = 0.3  # seconds without a number before asking whether there is a supervisor at all, and then every ten


def longest() -> float:
    """How long the agent's program lets one of its tools run, in seconds."""
    try:
        seconds = float(os.environ.get("CORAL_TOOL_SECONDS", ""))
    except ValueError:
        return TOOL_SECONDS
    return seconds if 0 < seconds < 1e6 else TOOL_SECONDS


@dataclass(frozen=True)
class Inline:
    """A heartbeat that is delivered by being printed here."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """What is known of a submission: nothing, a number, a refusal, or a record and what follows from it.

    `settled`: nothing more will come. `abandoned`: nothing will come before somebody resumes the run.
    """

    number: int | None = None
    attempt: Attempt | None = None
    refused: str = ""
    hint: str = ""
    heartbeats: tuple[str, ...] = ()
    inline: tuple[Inline, ...] = ()
    settled: bool = False
    abandoned: bool = False


def wait(layout: Layout, agent: str, submission: str, seconds: float) -> Outcome:
    """Until the grade is out, the submission refused or the run abandoned, at most `seconds`."""
    store, outcome = Store(layout.attempts), Outcome()
    seen, doubt = float("inf"), DOUBT
    for passed in pauses(seconds):
        outcome = look(store, agent, submission)
        if outcome.settled:
            break
        if outcome.attempt is not None:
            seen = min(seen, passed)
            if passed - seen > SETTLE:
                break
        elif passed >= doubt:
            doubt = passed + 10
            if unsupervised(layout):
                return replace(look(store, agent, submission), abandoned=True)
    return outcome


def look(store: Store, agent: str, submission: str) -> Outcome:
    """What is known of a submission now."""
    reply = LenientJson(store.read_reply(agent, submission))
    if refused := reply.text("refused", 2000):
        return Outcome(refused=refused, hint=reply.text("hint"), settled=True)
    number = reply.integer("attempt")
    attempt = published(store, number)
    told = reply.integer("launch")
    follows = told is None or launch_here(agent) <= told
    return Outcome(
        number=number,
        attempt=attempt,
        heartbeats=tuple(reply.texts("heartbeats")) if follows else (),
        inline=tuple(_inline(each) for each in reply.each("inline")) if follows else (),
        settled=attempt is not None and reply.data.get("published") is True,
    )


def launch_here(agent: str) -> int:
    """The number of the agent's launch that this command runs in; 0 where it runs in none.

    What followed from a grade that came out in an earlier launch was carried by the launches since: it is over.
    """
    who, _, number = os.environ.get("CORAL_LAUNCH", "").partition("/")[2].rpartition("/")
    return int(number) if who == agent and number.isdecimal() and number.isascii() else 0


def published(store: Store, number: int | None) -> Attempt | None:
    """The record of an attempt, once it is out."""
    if number is None or number < 0:
        return None
    try:
        return store.read(number)
    except (StoreError, OSError):
        return None


def commit_of(layout: Layout, agent: str, submission: str, outcome: Outcome) -> str:
    """The commit of a submission that is not graded yet: from the inbox, later from where the hub pins it."""
    if outcome.number is None:
        return read(layout.attempts / "inbox" / agent / f"{submission}.json").text("commit")
    try:
        return read_bytes(layout.hub / "refs" / "attempts" / str(outcome.number)).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def own_submissions(store: Store, agent: str) -> list[str]:
    """The ids of what this agent handed in, oldest first: what was answered and what still waits."""
    names: set[str] = set()
    for folder in (store.root / "replies" / agent, store.root / "inbox" / agent):
        try:
            with os.scandir(folder) as entries:
                names.update(entry.name[:-5] for entry in entries if entry.name.endswith(".json"))
        except OSError:
            continue
    return sorted(name for name in names if len(name) == 20 and name.isdecimal() and name.isascii())


def _inline(data: LenientJson) -> Inline:
    text = data.data.get("text")
    return Inline(data.text("id"), data.text("name", 60), text if isinstance(text, str) else "")
