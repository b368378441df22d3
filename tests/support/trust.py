"""The tables of docs/trust.md, as tests read them: who tries what, and what comes of it at each level.

The page alone says what comes of an attack. Here is what it says of this machine; in `agent_attacks` and
`candidate_attacks`, what is tried for each of its rows.
"""

import contextlib
import os
import pty
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from coral.grader import landlock, sandbox
from coral.processes import cgroup
from workspace.seal import Level

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"


class Who(StrEnum):
    """Who tries: the first cell of a table's head."""

    AGENT = "what an agent could try"
    GRADED = "what a candidate could try that a grader runs or loads"
    BEHIND = "what a candidate could try"  # behind run_candidate


# The levels of each, the strongest first: the columns of its table.
LEVELS: dict[Who, tuple[str, ...]] = {
    Who.AGENT: tuple(Level),
    Who.GRADED: tuple(Level),
    Who.BEHIND: sandbox.LEVELS,
}


class Outcome(StrEnum):
    """The first word of a cell. ENDED: it comes to an end that the supervisor makes. NOTICED: it is done, found, and
    put right."""

    CLOSED = "closed"
    ENDED = "ended"
    NOTICED = "noticed"
    OPEN = "open"


@dataclass(frozen=True)
class Attack:
    """`row`: how its row of the page begins. `act`: what is done, in the language of who does it. `made`: a file that
    is there if it was done (a pattern, below a folder that the test knows); without it, what the attack got says so.
    `alert`: what is told of it where it is noticed."""

    row: str
    act: str
    made: str = ""
    alert: str = ""


# What depends on the machine: a part of a cell or of a row, and whether it is so here.
_CONDITIONS: dict[str, Callable[[], bool]] = {
    "from Linux 6.12": lambda: landlock.version() >= 6,
    "where control groups can be made": lambda: cgroup.own_group() is not None,
    "on x86-64 and 64-bit ARM": lambda: bool(sandbox.system_calls()),
    "if you are root": lambda: os.geteuid() == 0,
}


@cache
def tables() -> dict[Who, dict[str, dict[str, str]]]:
    """Return the tables of the page: rows by their first cell, cells by their column's head."""
    found: dict[Who, dict[str, dict[str, str]]] = {}
    head: list[str] = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells or not head:
            head = cells
        elif head[0] in set(Who) and not set(cells[0]) <= {"-"}:
            assert len(cells) == len(head), line
            found.setdefault(Who(head[0]), {})[cells[0]] = dict(zip(head[1:], cells[1:], strict=True))
    return found


def row_of(who: Who, begins: str) -> str:
    """Return the row that begins so; AssertionError unless exactly one does."""
    rows = [row for row in tables()[who] if row.startswith(begins)]
    assert len(rows) == 1, f"{len(rows)} rows of the table {who!r} begin with {begins!r}"
    return rows[0]


def expected(who: Who, begins: str, level: str) -> Outcome:
    """Return what the page says of a row at a level, on this machine. ValueError for a cell that does not say it."""
    row = row_of(who, begins)
    outcome = Outcome.OPEN
    for column, cell in tables()[who][row].items():
        if not cell.startswith("the same"):
            outcome = _outcome(cell, row)
        if column == f"`{level}`" or column == level:
            return outcome
    raise ValueError(f"the table {who!r} has no column {level}")


def _outcome(cell: str, row: str) -> Outcome:
    word = re.match(r"[a-z]+", cell)
    outcome = Outcome(word[0] if word else cell)
    if outcome is Outcome.OPEN:
        return Outcome.CLOSED if "if you are root" in row and not _CONDITIONS["if you are root"]() else outcome
    unmet = any(text in cell and not holds() for text, holds in _CONDITIONS.items())
    return Outcome.OPEN if unmet else outcome


def compare(who: Who, level: str, found: dict[str, Outcome], attacks: dict[str, Attack]) -> dict[str, Any]:
    """Return the attacks that did not come out as the page says: what it says, and what was found. Nothing that ended
    is told from what was never there: both are closed."""

    def plain(outcome: Outcome) -> Outcome:
        return Outcome.CLOSED if outcome is Outcome.ENDED else outcome

    pairs = {name: (expected(who, attack.row, level), found.get(name)) for name, attack in attacks.items()}
    return {name: pair for name, pair in pairs.items() if pair[1] is None or plain(pair[0]) is not plain(pair[1])}


@contextlib.contextmanager
def of_the_user(secret: str) -> Iterator[tuple[str, str]]:
    """Yield what the user has beside files: shared memory with a name, which holds the secret, and a terminal. Their
    paths."""
    memory, (first, second) = Path(f"/dev/shm/coral-test-{os.getpid()}"), pty.openpty()
    try:
        with os.fdopen(os.open(memory, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret)
        yield str(memory), os.ttyname(second)
    finally:
        memory.unlink(missing_ok=True)
        os.close(first)
        os.close(second)
