"""One record as the index holds it: what is asked for, nothing of what is shown; and the file it was read from."""

from __future__ import annotations

import sqlite3

from attempts.files import Witness
from attempts.record import Attempt

# The last is kept apart from the others, so that a walk over the others is short.
COLUMNS = (
    "number",
    "ord",
    "agent",
    "kind",
    "verdict",
    "score REAL",
    "tree",
    "commit_id",
    "parent",
    "published_at",
    "inode",
    "size",
    "changed",
    "text",
)
FILE = 3  # columns that tell the file, before the text
LARGEST = 2**63 - 1  # that a column holds
Row = tuple[int | float | str | None, ...]
NOWHERE: Witness = (0, 0, 0)


def row_of(attempt: Attempt, seen: Witness) -> Row:
    return (
        attempt.number,
        min(attempt.order, LARGEST),
        attempt.agent,
        attempt.kind.value,
        attempt.verdict.value,
        attempt.score,
        attempt.tree,
        attempt.commit,
        attempt.parent,
        attempt.published_at,
        *seen,
        folded("\n".join((attempt.title, attempt.reason, attempt.feedback))),
    )


def folded(text: str) -> str:
    """Text as it is compared: the same in any case."""
    return text.casefold()


def holds(rows: sqlite3.Connection, attempt: Attempt) -> bool:
    """Whether an index has this record as it is, whatever file it was read from."""
    asked = "SELECT records.*, text FROM records JOIN said USING (number) WHERE number = ?"
    held, fresh = rows.execute(asked, (attempt.number,)).fetchone(), row_of(attempt, NOWHERE)
    return held is not None and (*held[: -FILE - 1], held[-1]) == (*fresh[: -FILE - 1], fresh[-1])
