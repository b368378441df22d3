"""Compares an index with the records: agents can write where it lies, and a well-formed index may hold false rows.

A command compares the records that it shows; only a comparison with all records finds what an index leaves out.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from attempts.index import file
from attempts.index.file import NOWHERE, Row, Unusable, content, folded, row_in, row_of
from attempts.record import attempt_from_dict

PATIENCE = 0.05  # seconds to wait for a process that writes the index; the next round is soon enough
SEARCHED = 0.02  # share of the records that are looked up by a text: that takes longer than all the rest
_FIELDS = ("number", "order", "agent", "kind", "verdict", "score", "tree", "commit", "parent", "published_at")
_TEXT_FIELDS = ("title", "reason", "feedback")


def mismatches(folder: Path, records: Mapping[int, str]) -> tuple[list[int], list[int]]:
    """The numbers of those records (as JSON) that the index lacks, and of those that it holds with other content.

    Both are empty where there is no usable index: whoever needs one makes it.
    """
    try:
        with file.foreign_database(), closing(file.opened(folder, PATIENCE)) as rows:
            # One transaction: without it each record would lock the file, and check for a journal.
            rows.execute("BEGIN")
            held = {number: row_in(rows, number) for number in records}
            missing = [number for number, row in held.items() if row is None]
            wrong = [number for number, row in held.items() if row and not _matches(rows, row, number, records[number])]
            return missing, wrong
    except Unusable:
        return [], []


def _matches(rows: sqlite3.Connection, held: Row, number: int, record: str) -> bool:
    """Whether a row says what the record says, and for a few of them whether the text search finds it."""
    data = json.loads(record)
    text = folded("\n".join(str(data.get(name)) for name in _TEXT_FIELDS))
    # Most rows hold the fields as they are in the record; only the others need the record to be read with care.
    is_same = content(held) == (*(data.get(name) for name in _FIELDS), text)
    if not is_same and content(held) != content(row_of(attempt_from_dict(data), NOWHERE)):
        return False
    return random.random() >= SEARCHED or not file.has_words(rows) or _is_found(rows, number, str(held[-1]))


def _is_found(rows: sqlite3.Connection, number: int, text: str) -> bool:
    """Whether the text search knows three characters of a record, others at each check."""
    if len(text) < 3:
        return True
    at = random.randrange(len(text) - 2)
    part = '"' + text[at : at + 3].replace('"', '""') + '"'
    return rows.execute("SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?", (part, number)).fetchone() is not None
