"""Reads those lines of a journal that cannot be applied, because lines before them are damaged: each for what it says
by itself.

A record that was published, a submission that was accepted, a process that was started, the highest figures and what
the operator ordered last are known without the state before them. A line that says nothing of this kind is skipped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attempts.fields import BAD_DATA
from attempts.record import Attempt, Submission
from coral.codec import TAG, decode
from coral.fleet.actions import Accept, Publish
from coral.fleet.agent_state import Meter, Order, Spent
from coral.fleet.events import NumberedSubmission, Submitted
from coral.fleet.members import Member
from coral.fleet.run_state import FLEET, SetLimit
from coral.processes.process_tree import Identity

# The counters of the run. They are taken over, so that no number is given twice.
COUNTS = ("next_number", "alert_count", "message_count", "question_count", "job_count")


@dataclass(slots=True)
class LostLines:
    at: float = 0.0
    wall: str = ""
    attempts: dict[int, Attempt] = field(default_factory=dict)
    accepted: dict[int, NumberedSubmission] = field(default_factory=dict)
    started: dict[str, dict[int, Identity]] = field(default_factory=dict)  # by who, then by launch
    sessions: dict[str, str] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    meters: dict[str, Meter] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)  # the agents that were added or moved, as last driven
    counts: dict[str, int] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)  # by agent: the last order
    budgets: dict[str, SetLimit] | None = None  # None where the lines say nothing of budgets
    is_held: bool | None = None


def read_lost(lines: Iterable[Mapping[str, Any]]) -> LostLines:
    found, submitted = LostLines(), dict[tuple[str, str], Submission]()
    for line in lines:
        found.at, found.wall = max(found.at, line.get("at", 0.0)), str(line.get("wall", found.wall))
        try:
            _read_started(found, line)
            _read_decision(found, line, submitted)
            _read_changes(found, line.get("set", {}))
        except BAD_DATA:
            continue
    return found


def _read_started(found: LostLines, line: Mapping[str, Any]) -> None:
    for who, (launch, plain) in line.get("started", {}).items():
        found.started.setdefault(who, {})[int(launch)] = decode(Identity, plain)


def _read_decision(found: LostLines, line: Mapping[str, Any], submitted: dict[tuple[str, str], Submission]) -> None:
    for plain in line.get("events", ()):
        if plain[TAG] == Submitted.__name__:
            submission = decode(Submitted, plain).submission
            submitted[submission.agent, submission.id] = submission
    for plain in line.get("actions", ()):
        if plain[TAG] == Publish.__name__:
            attempt = decode(Publish, plain).attempt
            found.attempts[attempt.number] = attempt
        elif plain[TAG] == Accept.__name__:
            action = decode(Accept, plain)
            if (known := submitted.get((action.agent, action.submission))) is not None:
                found.accepted[action.number] = NumberedSubmission(number=action.number, submission=known)


def _read_changes(found: LostLines, changes: Mapping[str, Any]) -> None:
    run = changes.get("run", {})
    found.counts |= {name: int(run[name]) for name in COUNTS if name in run}
    if "spent" in run:
        found.spent[FLEET] = decode(Spent, run["spent"])
    if "budgets" in run:
        found.budgets = {key: decode(SetLimit, plain) for key, plain in run["budgets"].items()}
    if "is_grading_held" in run:
        found.is_held = bool(run["is_grading_held"])
    if "members" in run:
        found.members = {name: decode(Member, plain) for name, plain in run["members"].items()}
    for name, plain in changes.get("agents", {}).items():
        if plain is None:
            continue
        if "spent" in plain:
            found.spent[name] = decode(Spent, plain["spent"])
        if "meter" in plain:
            found.meters[name] = decode(Meter, plain["meter"])
        if "order" in plain:
            found.orders[name] = Order(plain["order"])
        if plain.get("session"):
            found.sessions[name] = str(plain["session"])
