"""Gathers the data for the prompt of a checkpoint: the checklist, and how the agent's work stands."""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from attempts.fields import one_line
from attempts.record import Attempt, Verdict
from coral.fleet.agent_state import Agent
from coral.fleet.run_state import AttemptStep, Fleet
from coral.views.format import age, duration, money
from coral.views.scale import Scale
from workspace import notes
from workspace.notes import Note

CHECKLIST_LINES = 100  # the rest is cut, and the prompt says so
CHECKLIST_LINE = 500  # characters; every agent pays for each of them at each checkpoint
SHOWN = 200  # characters of an error
LATEST = 10  # attempts whose cost and gain are told
_COMMENTS = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
# Within a line: over line ends, a note of nothing else would take minutes.
_ITEM = re.compile(r"^[^\S\n]*[-*+] \[([ xX])\] ", re.MULTILINE)
_BETTER = (Verdict.NEW_BEST, Verdict.OWN_BEST)


def checklist_of(shared: Path) -> dict[str, Any]:
    """Read the checklist. `lines`: its lines without comments; empty if it has nothing but comments and headings.
    `cut`: how many further lines were left out."""
    text = notes.read(shared, f"{shared}/HEARTBEAT.md") or ""
    lines = [_shortened(line.rstrip()) for line in _COMMENTS.sub("", text).splitlines() if line.strip()]
    points = [line for line in lines if not line.lstrip().startswith("#")]
    return {"lines": lines[:CHECKLIST_LINES] if points else [], "cut": max(len(lines) - CHECKLIST_LINES, 0)}


def _shortened(line: str) -> str:
    return line if len(line) <= CHECKLIST_LINE else f"{line[: CHECKLIST_LINE - 1]}…"


def items_of(held: Sequence[Note], agent: str) -> dict[str, int]:
    """Count the items `- [ ]` and `- [x]` in the agent's own notes: `done` are ticked, `total` are all."""
    marks = [mark for note in held if note.author == agent for mark in _ITEM.findall(note.body)]
    return {"done": sum(mark != " " for mark in marks), "total": len(marks)}


def snapshot(fleet: Fleet, name: str, recent: Sequence[Attempt], held: Sequence[Note], scale: Scale) -> dict[str, Any]:
    """Return how the agent's work stands. `recent`: its latest attempts of this epoch, newest first. `held`: the notes
    in which its own items are counted."""
    agent, failed = fleet.agents[name], [attempt for attempt in recent if attempt.verdict is Verdict.FAILED]
    better = next((attempt for attempt in recent if attempt.verdict in _BETTER), None)
    in_a_row = takewhile(lambda attempt: attempt.verdict is Verdict.FAILED, recent)
    waiting = (AttemptStep.TAKING, AttemptStep.QUEUED)
    return {
        "queue": sum(attempt.step in waiting for attempt in fleet.pending.values()),
        "success": better and {"number": better.number, "score": _score(fleet, better), "title": better.title},
        # The last error of the agent's program, until a launch ends well; else the last failed attempt with its number.
        "error": agent.last_error or next((_failure(attempt) for attempt in failed), ""),
        "failures": sum(1 for _ in in_a_row),
        "questions": [question.text for question in fleet.run.questions if question.agent == name],
        "items": items_of(held, name),
        "latest": _latest(recent[:LATEST], agent, scale),
    }


def _score(fleet: Fleet, attempt: Attempt) -> float | None:
    """Return the median of the attempt's grades, as every other part of the prompt has it."""
    measured = fleet.measured.get(attempt.number)
    return attempt.score if measured is None else measured.value


def _failure(attempt: Attempt) -> str:
    return f"#{attempt.number}: {one_line(attempt.reason, SHOWN)}"


def _latest(latest: Sequence[Attempt], agent: Agent, scale: Scale) -> dict[str, Any]:
    """Return what the latest attempts cost and gained. Money is known only for the agent as a whole, so their cost is
    estimated by its average for an attempt; if not all of it is known, it is left out."""
    gained = [attempt for attempt in latest if attempt.verdict in _BETTER]
    used, graded, is_known = agent.spent.money, agent.progress.graded, not agent.meter.is_money_partial
    return {
        "count": len(latest),
        "gains": len(gained),
        "gain": scale.of(gained[0]) if gained else "",
        "time": _time(latest),
        "money": f"about {money(len(latest) * used / graded)}" if used and graded and is_known else "",
    }


def _time(latest: Sequence[Attempt]) -> str:
    """Return in words the time from the submission of the oldest of these attempts to the publication of the newest."""
    seconds = age(latest[-1].submitted_at, -(age(latest[0].published_at, 0.0) or 0.0)) if latest else None
    return "" if seconds is None else duration(max(seconds, 0.0))
