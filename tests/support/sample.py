"""A run folder with a history, written by the real functions, for the commands that only look."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from records import readable

from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.standing import Scoring, Standing, advance, judge
from attempts.store import Store
from coral.fleet.reasons import START
from coral.views.fleet_view import Unit, due_data
from coral.views.reasons import reason_data
from heartbeats.folder import Folder
from heartbeats.heartbeat import BUILT_IN, Scope
from workspace import knowledge
from workspace.layout import Layout, create, new_run

AGENTS = ("agent-1", "agent-2")


def stamp(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="milliseconds")


def attempt(number: int, score: float | None, **fields: object) -> Attempt:
    """Return a record; fields that are not given have plain values."""
    data: dict[str, object] = {
        "number": number,
        "agent": AGENTS[number % 2] if number else "",
        "kind": Kind.REAL if number else Kind.BASELINE,
        "commit": f"{number:040x}",
        "tree": f"{number:040x}",
        "parent": f"{number - 1:040x}" if number else "",
        "title": f"try {number}" if number else "the seed",
        "submission": f"{number:020d}" if number else "",
        "submitted_at": stamp(601 - number),
        "published_at": stamp(600 - number),
        "order": number,
        "verdict": Verdict.FAILED if score is None else Verdict.OWN_BEST if number else Verdict.NEW_BEST,
        "score": score,
        "reason": "two circles overlap" if score is None else "",
        **fields,
    }
    return Attempt(**data)  # type: ignore[arg-type]  # the fields are named above


def submission(agent: str = "agent-1", number: int = 1, **fields: object) -> Submission:
    """Return a submission; fields that are not given have plain values."""
    data: dict[str, object] = {
        "id": f"{number:020d}",
        "agent": agent,
        "commit": "1" * 40,
        "tree": "2" * 40,
        "title": "try",
        "kind": Kind.REAL,
        "wait": 0.0,
        "submitted_at": "now",
        **fields,
    }
    return Submission(**data)  # type: ignore[arg-type]  # as above


# Its agents can be moved and added to, by a program and by roles.
STEERED_TASK = """\
task: {name: toy, description: d}
grader: {command: 'true'}
agents:
  assignments:
    - {runtime: scripted, role: Draft., options: {script: [hang]}}
    - {runtime: command, model: opus, options: {start: [/bin/true, '{model}']}}
"""


def make_run(runs: Path, scores: Sequence[float | None] = (1.0, 1.5, None, 1.25, 2.0), task: str = "toy") -> Layout:
    """Make a run whose baseline is the first score, with the verdicts that a grader without noise gives."""
    layout = new_run(runs, task)
    create(layout, AGENTS)
    for agent in AGENTS:
        layout.clone(agent).mkdir()
    knowledge.create(layout.shared)
    standing, scoring = Standing(), Scoring()
    for number, score in enumerate(scores):
        plain = attempt(number, score)
        if plain.agent and score is not None:
            found = judge(standing, plain.agent, score, scoring)
            plain = attempt(number, score, verdict=found.verdict, against=found.against, delta=found.delta)
        standing = advance(standing, plain, scoring)
        Store(layout.attempts).publish(plain)
    return layout


def write_status(layout: Layout, state: str = "running", **fields: object) -> None:
    """Write status.json of a run."""
    put_status(layout, readable(Store(layout.attempts)), state, **fields)


def put_status(layout: Layout, records: Sequence[Attempt], state: str = "running", **fields: object) -> None:
    """`write_status` for whoever has the records."""
    best = max((record for record in records if record.score is not None), key=lambda record: record.score or 0)
    agents = [agent_status(agent) for agent in AGENTS]
    shown = {"number": best.number, "agent": best.agent, "title": best.title, "score": best.score}
    shown |= {"median": best.score, "mean": best.score, "deviation": None, "count": 1}
    status = {
        "format": 1,
        "run": layout.root.name,
        "task": "toy",
        "direction": "maximize",
        "state": state,
        "reason": None,
        "health": {"level": "healthy", "seconds": None, "reasons": []},
        "pid": 1,
        "wall": stamp(0.2),
        "clock": 600.0,
        "started_at": stamp(600),
        "baseline": 1.0,
        "best": shown,
        "lead": {**shown, "proven": True},
        "noise": 0.0,
        "confirmations": 0,
        "attempts": len(records) - 1,
        "failed": 0,
        "grading": {"slots": 2, "running": [], "queued": [], "paused": False},
        "seal": "none",
        "budget": {"lines": ["6 of 10 attempts are left"]},
        "agents": agents,
        "alerts": [],
        **fields,
    }
    layout.status.write_text(json.dumps(status))


def agent_status(name: str, **fields: object) -> Mapping[str, object]:
    return {
        "name": name,
        "runtime": "native",
        "phase": "running",
        "reason": reason_data(START),
        "launch": 3,
        "session": "s",
        "attempts": 2,
        "best": 2.0,
        "stagnant": 1,
        "beat": {"phase": "thinking", "message": "about rows", "age": 2.0},
        "next": [
            {**due_data("reflect", 1, Unit.ATTEMPTS), "after_each": True},
            due_data("redirect", 4, Unit.STAGNANT),
        ],
        "pending": [],
        "until": None,
        **fields,
    }


def write_events(layout: Layout, *events: Mapping[str, object]) -> None:
    layout.events.parent.mkdir(parents=True, exist_ok=True)
    with layout.events.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def write_heartbeats(layout: Layout) -> None:
    folder = Folder(layout.heartbeats)
    folder.write("fleet", [(heartbeat, "8 attempts") for heartbeat in BUILT_IN if heartbeat.scope is Scope.FLEET])
    for agent in AGENTS:
        folder.write(agent, [(heartbeat, "") for heartbeat in BUILT_IN if heartbeat.scope is Scope.OWN])


def requests_of(layout: Layout, sender: str = "operator") -> list[dict[str, object]]:
    """Return the requests that were not read yet, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(layout.requests_of(sender).glob("*.json"))]
