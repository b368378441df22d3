"""What the prompt of a checkpoint gives an agent, so that it need not ask: the checklist, and how its work stands."""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from attempts.fields import one_line
from attempts.record import Attempt, Verdict
from coral.fleet.agent_state import Agent
from coral.fleet.run_state import AttemptStep, Fleet
from coral.views.format import age, duration
from coral.views.scale import Scale
from workspace import notes
from workspace.notes import Note

CHECKLIST_LINES = 100  # the rest is cut, and the prompt says so
CHECKLIST_LINE = 500  # characters; every agent pays for each of them at each checkpoint
SHOWN = 200  # characters of an error
LATEST = 10  # attempts whose cost and gain are told
_COMMENTS = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_ITEM = re.compile(r"^\s*[-*+] \[([ xX])\] ", re.MULTILINE)
_BETTER = (Verdict.NEW_BEST, Verdict.OWN_BEST)


def checklist_of(shared: Path) -> dict[str, Any]:
    """`lines`: of the checklist, without comments; empty if nothing but comments and headings is there. `cut`: how many
    lines more it has."""
    text = notes.read(shared, f"{shared}/HEARTBEAT.md") or ""
    lines = [_shortened(line.rstrip()) for line in _COMMENTS.sub("", text).splitlines() if line.strip()]
    points = [line for line in lines if not line.lstrip().startswith("#")]
    return {"lines": lines[:CHECKLIST_LINES] if points else [], "cut": max(len(lines) - CHECKLIST_LINES, 0)}


def _shortened(line: str) -> str:
    return line if len(line) <= CHECKLIST_LINE else f"{line[: CHECKLIST_LINE - 1]}…"


def items_of(held: Sequence[Note], agent: str) -> dict[str, int]:
    """The items (`- [ ]`, `- [x]`) of the agent's own notes: how many are done, and how many there are."""
    marks = [mark for note in held if note.author == agent for mark in _ITEM.findall(note.body)]
    return {"done": sum(mark != " " for mark in marks), "total": len(marks)}


def snapshot(fleet: Fleet, name: str, recent: Sequence[Attempt], held: Sequence[Note], scale: Scale) -> dict[str, Any]:
    """How the agent's work stands. `recent`: its latest attempts of this epoch, the newest first."""
    agent, failed = fleet.agents[name], [attempt for attempt in recent if attempt.verdict is Verdict.FAILED]
    better = next((attempt for attempt in recent if attempt.verdict in _BETTER), None)
    in_a_row = takewhile(lambda attempt: attempt.verdict is Verdict.FAILED, recent)
    waiting = (AttemptStep.TAKING, AttemptStep.QUEUED)
    return {
        "queue": sum(attempt.step in waiting for attempt in fleet.pending.values()),
        "success": better and {"number": better.number, "score": better.score, "title": better.title},
        # Its program's, while no launch has ended well since; an attempt's has its number, which says when it was.
        "error": agent.last_error or next((_failure(attempt) for attempt in failed), ""),
        "failures": sum(1 for _ in in_a_row),
        "questions": [asked.text for asked in fleet.run.questions if asked.agent == name],
        "items": items_of(held, name),
        "latest": _latest(recent[:LATEST], agent, scale),
    }


def _failure(attempt: Attempt) -> str:
    return f"#{attempt.number}: {one_line(attempt.reason, SHOWN)}"


def _latest(latest: Sequence[Attempt], agent: Agent, scale: Scale) -> dict[str, Any]:
    """What the latest attempts cost and gained. Money is known for the agent as a whole, so it is its average."""
    gained = [attempt for attempt in latest if attempt.verdict in _BETTER]
    used, graded = agent.spent.money, agent.progress.graded
    return {
        "count": len(latest),
        "gains": len(gained),
        "gain": scale.of(gained[0]) if gained else "",
        "time": _time(latest),
        "money": f"about ${len(latest) * used / graded:.2f}" if used and graded else "",
    }


def _time(latest: Sequence[Attempt]) -> str:
    """Seconds from the first attempt's submission to the last one's publication."""
    seconds = age(latest[-1].submitted_at, -(age(latest[0].published_at, 0.0) or 0.0)) if latest else None
    return "" if seconds is None else duration(max(seconds, 0.0))
