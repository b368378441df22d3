"""Questions about all records, answered without reading them all: from `index.sqlite`, which may be deleted any time.

The records are the truth. An index that was refreshed knows every record that is in the folder and none that is not;
and it answers in numbers, so that what is shown is read from the record itself, and compared (`agrees`, `audit`).
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from attempts.files import Witness
from attempts.index import file
from attempts.index.file import Unusable
from attempts.index.row import NOWHERE, Row, holds, row_of
from attempts.record import Attempt, attempt_from_dict, to_dict
from attempts.store import Malformed, Missing, Store

SETTLED = 2.0  # seconds: a change so soon after another may leave the folder's times as they are
MANY = 2000  # new records: beyond that all are read, and a new index is made
READER_PATIENCE = 0.05  # seconds that somebody who only looks waits to write down what he found
_RECORD = re.compile(r"/([0-9]{6}|[1-9][0-9]{6,11})\.json(?=/)")
TRIES = 3  # somebody who alters records while they are looked at sees what they say in the end
T = TypeVar("T")


class Numbered(Protocol):
    """An answer about one attempt."""

    @property
    def number(self) -> int: ...


N = TypeVar("N", bound=Numbered)


class Index:
    """The index of one attempts folder. `tell` is called with a number before so many records are read."""

    def __init__(self, folder: Path, tell: Callable[[int], None] = lambda _: None) -> None:
        self.folder = folder
        self._store = Store(folder)
        self._tell = tell
        self._rows: sqlite3.Connection | None = None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def refresh(self) -> None:
        """Bring it up to date with the folder: the file where it can be written, else what this process has of it."""
        try:
            self._catch_up(self._rows or self._opened())
        except Unusable:
            self._make()

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """The answer to a question (`index_query`). A file that breaks while it is asked is replaced."""
        if self._rows is None:
            self.refresh()
        assert self._rows is not None
        try:
            with file.trusting_nothing():
                file.limit(self._rows)
                return question(self._rows)
        except Unusable:
            return question(self._make())

    def add(self, attempts: Iterable[Attempt]) -> bool:
        """Take in what was just published, at a cost that does not grow; False where that is left to whoever looks."""
        # As whoever reads the file will find it: control characters and the like are left out there.
        found = [attempt_from_dict(to_dict(attempt)) for attempt in attempts]
        rows = [(record.number, row_of(record, self._seen(record.number))) for record in found]
        try:
            file.write(self.folder, lambda found: file.put(found, rows))
        except Unusable:
            return False
        return True

    def shown(self, question: Callable[[sqlite3.Connection], Iterable[N]]) -> list[tuple[N, Attempt]]:
        """The answer with the records it names. Where one is not what the index holds, all are looked at first."""
        found: list[tuple[N, Attempt | None]] = []
        for _ in range(TRIES):
            found = [(row, self._record(row.number)) for row in self.ask(lambda rows: list(question(rows)))]
            if all(record is not None and self.agrees(record) for _, record in found):
                break
            self.audit()
        return [(row, record) for row, record in found if record is not None]

    def agrees(self, attempt: Attempt) -> bool:
        """Whether the index holds of this record what its file says."""
        return self.ask(lambda rows: holds(rows, attempt))

    def audit(self) -> None:
        """Look at every file, and read those again that are not what was read: somebody wrote into one."""
        held = self.ask(lambda rows: rows.execute("SELECT number, inode, size, changed FROM records").fetchall())
        altered = [int(number) for number, *seen in held if self._seen(int(number)) != tuple(seen)]
        self._write(self.ask(lambda rows: rows), list(self._read(altered)), [])

    def _opened(self) -> sqlite3.Connection:
        self._rows = file.opened(self.folder)
        return self._rows

    def _make(self) -> sqlite3.Connection:
        """From the records alone."""
        self.close()
        numbers = sorted(self._listed())
        self._tell(len(numbers))
        try:
            self._rows = file.made(self.folder, self._read(numbers))
        except (Unusable, sqlite3.Error, OSError):
            # A full disk, or somebody who replaces it as soon as it is there: what is in the way there is not here.
            self._rows = file.in_memory(self._read(numbers))
        return self._rows

    def _catch_up(self, rows: sqlite3.Connection) -> None:
        """Compare the names of all records; the folder's own times spare that where they are old enough to tell."""
        with file.trusting_nothing():
            file.limit(rows)
            now, times = time.time(), self._times()
            if file.value(rows, "settled") == times:
                return
            fresh, gone = _differences(rows, self._listed())
        if len(fresh) + len(gone) > MANY:
            raise Unusable("it is far behind")
        settled = times if now - float(times.partition(" ")[0]) / 1e9 > SETTLED else ""
        if fresh or gone or settled:
            self._write(rows, list(self._read(fresh)), gone, settled)

    def _write(
        self, rows: sqlite3.Connection, fresh: list[tuple[int, Row | None]], gone: list[int], settled: str = ""
    ) -> None:
        """Write down what was found; what cannot be written is true for this process all the same."""

        def change(found: sqlite3.Connection) -> None:
            file.put(found, fresh)
            file.drop(found, gone)
            if settled:
                file.say(found, "settled", settled)

        try:
            file.write(self.folder, change, READER_PATIENCE)
        except Unusable:
            if fresh or gone:
                self._rows = file.copied(rows)
                rows.close()
                change(self._rows)
        else:
            rows.close()
            self._opened()

    def _times(self) -> str:
        """When the folder was last changed, as it says itself: nobody can set the second of the two."""
        found = self.folder.stat()
        return f"{max(found.st_mtime_ns, found.st_ctime_ns)} {found.st_mtime_ns} {found.st_ctime_ns}"

    def _listed(self) -> list[int]:
        """The numbers of all records, in no order. Names are searched all at once: one by one takes twice as long."""
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - paths would take ten times as long
        except OSError:
            return []
        return list(map(int, _RECORD.findall(f"/{'/'.join(names)}/")))

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[int, Row | None]]:
        for number in numbers:
            seen = self._seen(number)
            with contextlib.suppress(Missing):  # gone since it was listed
                try:
                    yield number, row_of(self._store.read(number), seen)
                except (Malformed, OSError):
                    yield number, None

    def _record(self, number: int) -> Attempt | None:
        try:
            return self._store.read(number)
        except (Missing, Malformed, OSError):
            return None

    def _seen(self, number: int) -> Witness:
        return self._store.witness(number) or NOWHERE


def _differences(rows: sqlite3.Connection, listed: list[int]) -> tuple[list[int], list[int]]:
    """What is to be read: only in the folder, or not readable so far; and what is in the index only."""
    (held,), (read,) = (rows.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("known", "records"))
    (last,) = rows.execute("SELECT max(number) FROM known").fetchone()
    dense = held == len(listed) and last == held - 1 == max(listed, default=-1)  # 0 to the last, here and there
    if dense and read == held:
        return [], []
    known = {int(number) for (number,) in rows.execute("SELECT number FROM known")}
    there, readable = set(listed), {int(number) for (number,) in rows.execute("SELECT number FROM records")}
    return sorted(there - readable), sorted(known - there)
