"""Answers questions about all records without reading them all: from `index.sqlite`, which may be deleted at any time.

The records are the truth. A refreshed index knows every record that is in the folder and no other. It answers with
numbers, so that what a command shows is read from the record itself and compared with the index (`shown`).
"""

import contextlib
import json
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from attempts.files import Witness
from attempts.index import file
from attempts.index.file import (
    FIELDS,
    NO_FILE,
    TEXT_FIELDS,
    Row,
    Unusable,
    content,
    folded,
    numeric_metrics,
    row_in,
    row_of,
)
from attempts.index.query import Named, Ranked
from attempts.record import Attempt, attempt_from_dict, to_dict
from attempts.store import Malformed, Missing, Store

SETTLED = 2.0  # seconds: a change so soon after another may leave the folder's times as they are
MANY = 2000  # new records: beyond that a new index is made
READER_PATIENCE = 0.05  # seconds that a reader waits to save what it found
_RECORD = re.compile(r"/([0-9]{6}|[1-9][0-9]{6,11})\.json(?=/)")
TRIES = 3  # while records are altered under our eyes; then what they say is shown
CHECK_PATIENCE = 0.05  # seconds to wait for a process that writes the index; the next round is soon enough
SEARCHED = 0.02  # share of the records that are looked up by a text: that takes longer than all the rest
T = TypeVar("T")
N = TypeVar("N", Named, Ranked)


class Index:
    """The index of one attempts folder. `on_rebuild` is called with the number of records that a new index has to
    read."""

    def __init__(self, folder: Path, on_rebuild: Callable[[int], None] = lambda _: None) -> None:
        self.folder = folder
        self._store = Store(folder)
        self._on_rebuild = on_rebuild
        self._rows: sqlite3.Connection | None = None
        self._can_peek = True

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def refresh(self) -> None:
        """Bring the index up to date with the folder: the file if it can be written, else a copy in this process."""
        try:
            self._catch_up(self._rows or self._opened())
        except Unusable:
            self._make()

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return the answer to a question (of `query`). A file that turns out to be damaged is replaced."""
        if self._rows is None:
            self.refresh()
        assert self._rows is not None
        try:
            with file.foreign_database():
                file.limit(self._rows)
                return question(self._rows)
        except Unusable:
            return question(self._make())

    def peek(self, question: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the answer from the file as it is, which may lack the latest records: to bring it up to date may take
        seconds. None if the file cannot be used, and from then on."""
        try:
            with file.foreign_database():
                if self._rows is None and self._can_peek:
                    self._can_peek = False
                    self._rows = file.connect(self.folder, CHECK_PATIENCE)
                if self._rows is None:
                    return None
                file.limit(self._rows)
                return question(self._rows)
        except Unusable:
            self.close()
            return None

    def add(self, attempts: Iterable[Attempt]) -> bool:
        """Add records that were just published, at a cost that does not grow with the run; False if that failed, and
        the next reader has to do it."""
        # Encoded and decoded as a reader of the file gets it: without control characters, for instance.
        records = [attempt_from_dict(to_dict(attempt)) for attempt in attempts]
        rows = [(record.number, row_of(record, self._witness(record.number))) for record in records]
        try:
            file.write(self.folder, lambda connection: file.put(connection, rows))
        except Unusable:
            return False
        return True

    def with_records(self, question: Callable[[sqlite3.Connection], Iterable[N]]) -> list[tuple[N, Attempt]]:
        """Return the answer to a question with its records. If a record differs from the index, all altered records are
        read again first, and the question is asked once more."""
        found: list[tuple[N, Attempt | None]] = []
        for _ in range(TRIES):
            found = [(row, self._store.find(row.number)) for row in self.ask(lambda rows: list(question(rows)))]
            if all(record is not None and self.agrees(record) for _, record in found):
                break
            self.audit()
        return [(row, record) for row, record in found if record is not None]

    def agrees(self, attempt: Attempt) -> bool:
        """Return whether the index holds this record as it is."""
        held = self.ask(lambda rows: row_in(rows, attempt.number))
        return held is not None and content(held) == content(row_of(attempt, NO_FILE))

    def audit(self) -> None:
        """Read every record again whose file has changed since it was read."""
        held = self.ask(lambda rows: rows.execute("SELECT number, inode, size, changed FROM records").fetchall())
        altered = [int(number) for number, *recorded in held if self._witness(int(number)) != tuple(recorded)]
        self._write(self.ask(lambda rows: rows), list(self._read(altered)), [])

    def _opened(self) -> sqlite3.Connection:
        self._rows = file.connect(self.folder)
        return self._rows

    def _make(self) -> sqlite3.Connection:
        """Make a new index, from the records alone."""
        self.close()
        numbers = sorted(self._listed())
        self._on_rebuild(len(numbers))
        try:
            self._rows = file.create(self.folder, self._read(numbers))
        except (Unusable, sqlite3.Error, OSError):
            # A full disk, or somebody who keeps replacing the file: neither touches an index in memory.
            self._rows = file.create_in_memory(self._read(numbers))
        return self._rows

    def _catch_up(self, rows: sqlite3.Connection) -> None:
        """Compare the names of all records with the index, unless the folder's times show that no name changed."""
        with file.foreign_database():
            file.limit(rows)
            found, now = self.folder.stat(), time.time()
            changed = max(found.st_mtime_ns, found.st_ctime_ns)  # nobody can set the second of the two
            times = f"{changed} {found.st_mtime_ns} {found.st_ctime_ns}"
            if file.value(rows, "settled") == times:
                return
            fresh, gone = _differences(rows, self._listed())
        if len(fresh) + len(gone) > MANY:
            raise Unusable("it is far behind")
        settled = times if now - changed / 1e9 > SETTLED else ""
        if fresh or gone or settled:
            self._write(rows, list(self._read(fresh)), gone, settled)

    def _write(
        self, rows: sqlite3.Connection, fresh: list[tuple[int, Row | None]], gone: list[int], settled: str = ""
    ) -> None:
        """Save what was found; if it cannot be saved, this process goes on with a copy in memory."""

        def change(found: sqlite3.Connection) -> None:
            file.put(found, fresh)
            file.drop(found, gone)
            if settled:
                file.set_value(found, "settled", settled)

        try:
            file.write(self.folder, change, READER_PATIENCE)
        except Unusable:
            if fresh or gone:
                self._rows = file.copy_in_memory(rows)
                rows.close()
                change(self._rows)
        else:
            rows.close()
            self._opened()

    def _listed(self) -> list[int]:
        """Return the numbers of all records, in no order. One search over all names takes half as long as one search
        for each."""
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - paths would take ten times as long
        except OSError:
            return []
        return list(map(int, _RECORD.findall(f"/{'/'.join(names)}/")))

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[int, Row | None]]:
        for number in numbers:
            seen = self._witness(number)
            with contextlib.suppress(Missing):  # gone since it was listed
                try:
                    yield number, row_of(self._store.read(number), seen)
                except (Malformed, OSError):
                    yield number, None

    def _witness(self, number: int) -> Witness:
        return self._store.witness(number) or NO_FILE


def _differences(rows: sqlite3.Connection, listed: list[int]) -> tuple[list[int], list[int]]:
    """Return the numbers to read, because the index lacks them or could not read them before; and the numbers that only
    the index has."""
    (held,), (read,) = (rows.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("known", "records"))
    (last,) = rows.execute("SELECT max(number) FROM known").fetchone()
    # Where both hold every number from 0 to the last, the numbers need not be compared.
    if read == held == len(listed) and last == held - 1 == max(listed, default=-1):
        return [], []
    known = {int(number) for (number,) in rows.execute("SELECT number FROM known")}
    there, readable = set(listed), {int(number) for (number,) in rows.execute("SELECT number FROM records")}
    return sorted(there - readable), sorted(known - there)


def mismatches(folder: Path, records: Mapping[int, str]) -> tuple[list[int], list[int]]:
    """Return the numbers of those of the `records` (as JSON) that the index lacks, and of those that it holds with
    other content.

    Agents can write to the index, and a command compares only the records that it shows; this finds records that the
    index hides. Both are empty if there is no usable index: the next reader makes a new one.
    """
    try:
        with file.foreign_database(), closing(file.connect(folder, CHECK_PATIENCE)) as rows:
            # One transaction: without it each record would lock the file, and check for a journal.
            rows.execute("BEGIN")
            held = {number: row_in(rows, number) for number in records}
            missing = [number for number, row in held.items() if row is None]
            wrong = [number for number, row in held.items() if row and not _matches(rows, row, number, records[number])]
            return missing, wrong
    except Unusable:
        return [], []


def _matches(rows: sqlite3.Connection, held: Row, number: int, record: str) -> bool:
    """Return whether a row says what the record says, and, for a random few, whether the text search finds the
    record."""
    data = json.loads(record)
    text = folded("\n".join(str(data.get(name)) for name in TEXT_FIELDS))
    # Most rows hold the fields as they are in the record; only the others need the record to be read with care.
    is_same = content(held) == (*(data.get(name) for name in FIELDS), numeric_metrics(data.get("metrics")), text)
    if not is_same and content(held) != content(row_of(attempt_from_dict(data), NO_FILE)):
        return False
    return random.random() >= SEARCHED or not file.has_words(rows) or _is_found(rows, number, str(held[-1]))


def _is_found(rows: sqlite3.Connection, number: int, text: str) -> bool:
    """Return whether the text search finds three characters of a record, at a random place."""
    if len(text) < 3:
        return True
    at = random.randrange(len(text) - 2)
    part = '"' + text[at : at + 3].replace('"', '""') + '"'
    return rows.execute("SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?", (part, number)).fetchone() is not None
