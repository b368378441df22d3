"""The file of the ledger: its tables, and a new file, which replaces the old one whole or not at all."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from attempts.files import Witness
from attempts.record import Attempt, attempt_from_dict, to_dict
from coral.fleet.events import Restored

FORMAT = 2
BUSY_SECONDS = 1.0
UNKNOWN_WITNESS: Witness = (0, 0, 0)  # of a file that must be read: no file has this witness
_FIELDS = attrgetter("number", "order", "agent", "commit", "tree", "kind", "score", "epoch")
COLUMNS = "number, place, agent, commit_id, tree, kind, score, epoch, record"
# In one transaction: a supervisor that is killed in between leaves no file with a version but without tables.
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA user_version = {FORMAT};
CREATE TABLE records (
    number INTEGER PRIMARY KEY, place INTEGER NOT NULL, agent TEXT NOT NULL, commit_id TEXT NOT NULL,
    tree TEXT NOT NULL, kind TEXT NOT NULL, score REAL, epoch INTEGER NOT NULL, record TEXT NOT NULL,
    inode INTEGER, size INTEGER, changed INTEGER
);
CREATE INDEX by_agent ON records (agent, place);
CREATE INDEX by_tree ON records (tree, place) WHERE score IS NOT NULL;
CREATE INDEX by_commit ON records (commit_id, place) WHERE score IS NOT NULL;
COMMIT;
"""


def connect(path: Path | str) -> sqlite3.Connection:
    """Open a connection for any thread that holds the ledger's lock. It keeps the file locked: SQLite then needs no
    shared memory, which some file systems lack."""
    base = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    base.execute("PRAGMA locking_mode = EXCLUSIVE")
    return base


def make_tables(base: sqlite3.Connection) -> None:
    base.executescript(_SCHEMA)


def insert(base: sqlite3.Connection, attempts: Iterable[Attempt]) -> None:
    rows = ((*_FIELDS(attempt), json.dumps(to_dict(attempt), allow_nan=False)) for attempt in attempts)
    with base:
        base.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)", rows)


def read(record: str) -> Attempt:
    return attempt_from_dict(json.loads(record))


def published_since(path: Path, order: int) -> list[Attempt]:
    """Return the records in a ledger that were published after this order; none if it cannot be read. For the holder of
    the run's lock."""
    if not path.is_file():
        return []
    query = f"SELECT {COLUMNS} FROM records WHERE place > ? ORDER BY place"
    try:
        with contextlib.closing(connect(path)) as base:
            rows = base.execute(query, (order,)).fetchall()
    except sqlite3.DatabaseError:
        return []
    return [attempt for row in rows if (attempt := read_row(row)) is not None]


def read_row(row: tuple[Any, ...]) -> Attempt | None:
    """Return the record in a row of COLUMNS; None if it is damaged, or the row disagrees with it."""
    try:
        attempt = read(row[-1])
    except (ValueError, TypeError):
        return None
    return attempt if (attempt.number, attempt.order) == row[:2] else None


class NewLedgerFile:
    """A ledger that is being built. `places`: the place in the order of publication, by number."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f".{path.name}")
        self.places: dict[int, int] = {}
        self._unlink()
        self._base = connect(self.path)
        make_tables(self._base)

    def add(self, attempts: Iterable[Attempt]) -> None:
        insert(self._base, self._counted(attempts))

    def mark_written(self, numbers: Iterable[tuple[int]]) -> None:
        """Mark these records as written to their public files. Their witnesses stay unknown until the next check has
        read the files."""
        with self._base:
            self._base.executemany(
                "UPDATE records SET inode = ?, size = ?, changed = ? WHERE number = ?",
                ((*UNKNOWN_WITNESS, *number) for number in numbers),
            )

    def missing(self, count: int) -> set[int]:
        """Return the places among the first `count` that have no record yet."""
        return set(range(count)).difference(self.places.values())

    def add_unvouched(
        self, unvouched: Callable[[Collection[int]], Iterable[Attempt]], count: int, pending: Collection[int]
    ) -> list[Restored]:
        """Add records for missing places from the folder that agents can write. Returns reports for the operator: of
        these records, and of those that are nowhere. Records in `pending` will be published again, and are not
        missed."""
        missing = self.missing(count)
        due = len(set(pending) - self.places.keys())
        if len(missing) <= due:
            return []
        taken: dict[int, Attempt] = {}
        for attempt in unvouched(frozenset(self.places)):
            if attempt.order in missing:
                taken.setdefault(attempt.order, attempt)
        self.add(taken.values())
        losses, lost = [], len(missing) - len(taken) - due
        if taken:
            found, source = "were gone from journal and ledger", "attempts/, where agents can write: look at them"
            losses.append(Restored(item=f"{len(taken)} published records", found=found, source=source))
        if lost > 0:
            found = "are gone from journal, ledger and attempts/"
            losses.append(Restored(item=f"{lost} published records", found=found, source=""))
        return losses

    def row(self, number: int) -> tuple[object, ...] | None:
        found = self._base.execute(f"SELECT {COLUMNS} FROM records WHERE number = ?", (number,)).fetchone()
        return None if found is None else tuple(found)

    def replace(self, path: Path) -> None:
        """Put the new file in the place of the old one. OSError leaves the old one there."""
        self._base.close()
        remove_logs(path)  # SQLite would write the old file's log into the new one
        self.path.replace(path)

    def discard(self) -> None:
        self._base.close()
        self._unlink()

    def _counted(self, attempts: Iterable[Attempt]) -> Iterator[Attempt]:
        for attempt in attempts:
            self.places[attempt.number] = attempt.order
            yield attempt

    def _unlink(self) -> None:
        self.path.unlink(missing_ok=True)
        remove_logs(self.path)


def remove_logs(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def file_stamp(path: Path) -> tuple[int, ...] | None:
    """Return the figures of a file that change when somebody writes to it. The last one, the change time, cannot be set
    back."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns
