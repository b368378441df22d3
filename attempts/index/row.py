"""One record as the index holds it: what can be searched and sorted by, and which state of its file was read."""

from __future__ import annotations

import sqlite3

from attempts.files import Witness
from attempts.record import Attempt

# The text has a table of its own, so that reading all the other columns is quick.
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
FILE_COLUMNS = 3  # before the text: the witness of the file
LARGEST = 2**63 - 1  # integer that a column holds
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


def row_in(rows: sqlite3.Connection, number: int) -> Row | None:
    statement = "SELECT records.*, text FROM records LEFT JOIN texts USING (number) WHERE number = ?"
    found: Row | None = rows.execute(statement, (number,)).fetchone()
    return found


def content(row: Row) -> Row:
    """What a row says of its record, whatever file it was read from."""
    return (*row[: -FILE_COLUMNS - 1], row[-1])
