"""Whether an index says of records what they are. It lies where agents can write, and what has the right form may lie.

One who reads compares what he shows; only one who goes round all records finds what an index hides.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from attempts.index import file
from attempts.index.file import Unusable
from attempts.index.row import FILE, NOWHERE, Row, folded, row_of
from attempts.record import attempt_from_dict

PATIENCE = 0.05  # seconds to wait for somebody who writes it; the next round is soon enough
SEARCHED = 0.02  # of the records: asking for words takes longer than all the rest
_FIELDS = ("number", "order", "agent", "kind", "verdict", "score", "tree", "commit", "parent", "published_at")
_TEXT_FIELDS = ("title", "reason", "feedback")


def lies(folder: Path, records: Mapping[int, str]) -> tuple[list[int], list[int]]:
    """Of these records, as JSON, the numbers of those that the index lacks, and of those it has otherwise.

    Nothing where there is no index that can be used: then whoever looks makes one.
    """
    try:
        with file.trusting_nothing():
            rows = file.opened(folder, PATIENCE)
            try:
                return _lies(rows, records)
            finally:
                rows.close()
    except Unusable:
        return [], []


def _lies(rows: sqlite3.Connection, records: Mapping[int, str]) -> tuple[list[int], list[int]]:
    asked = "SELECT records.*, text FROM records LEFT JOIN said USING (number) WHERE number = ?"
    searched = file.has_words(rows)
    missing: list[int] = []
    wrong: list[int] = []
    rows.execute("BEGIN")  # one look at the file, not one for each record: each would lock it, and see to its journal
    for number, record in records.items():
        held = rows.execute(asked, (number,)).fetchone()
        if held is None:
            missing.append(number)
        elif not _is_of(held, record) or (
            searched and random.random() < SEARCHED and not _is_found(rows, number, str(held[-1]))
        ):
            wrong.append(number)
    return missing, wrong


def _is_of(held: Row, record: str) -> bool:
    """Most are as they were written; only of the others every field is read as carefully as an index reads it."""
    data = json.loads(record)
    indexed = (*held[: -FILE - 1], held[-1])
    if indexed == (
        *(data.get(name) for name in _FIELDS),
        folded("\n".join(str(data.get(name)) for name in _TEXT_FIELDS)),
    ):
        return True
    fresh = row_of(attempt_from_dict(data), NOWHERE)
    return indexed == (*fresh[: -FILE - 1], fresh[-1])


def _is_found(rows: sqlite3.Connection, number: int, text: str) -> bool:
    """Whether the index of words knows three characters of it, others at each look."""
    if len(text) < 3:
        return True
    at = random.randrange(len(text) - 2)
    part = '"' + text[at : at + 3].replace('"', '""') + '"'
    return rows.execute("SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?", (part, number)).fetchone() is not None
