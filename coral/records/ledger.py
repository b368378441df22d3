"""The supervisor's own copy of the published records, which is never read from the folder that agents can reach.

It is a private SQLite file beside the journal, built from the journal: whenever the two differ, or the file is damaged,
it is rebuilt. Each record has a witness (inode, size, change time), by which a change of its public file is noticed
without reading it.
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from attempts.files import Witness
from attempts.record import Attempt
from attempts.standing import Scored
from coral.errors import CoralError
from coral.fleet.events import Restored
from coral.records.ledger_file import (
    COLUMNS,
    FORMAT,
    NewLedgerFile,
    connect,
    file_stamp,
    insert,
    make_tables,
    read,
    read_row,
)

T = TypeVar("T")
P = ParamSpec("P")

BLOCK = 500  # rows that are read at a time under the lock, for which the other thread waits
REST = 4.0  # pause after a rebuild, as a multiple of its duration: an attacker can touch the file at no cost


class LedgerDamage(StrEnum):  # what was done to the ledger's file, as an alert says it
    TOUCHED = "was touched"
    ALTERED = "was altered"
    REPLACED = "was replaced"
    DELETED = "was deleted"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row of the ledger. `record`: the record as JSON. `witness`: that of its public file; None until the file was
    seen whole."""

    number: int
    record: str
    witness: Witness | None

    @property
    def attempt(self) -> Attempt:
        """The parsed record. Parsed only when needed, because an integrity check goes through thousands. ValueError if
        the row was spoiled."""
        return read(self.record)

    @property
    def taken_in(self) -> tuple[str, str] | None:
        """The author and the commit, if the commit was taken into the hub under this number; else None. ValueError if
        the row was spoiled."""
        data = json.loads(self.record)
        if not isinstance(data, dict):
            raise ValueError("it is no record")
        return (str(data.get("agent", "")), str(data.get("commit", ""))) if data.get("seal") else None


def _rebuilt_if_damaged(use: Callable[Concatenate["Ledger", P], T]) -> Callable[Concatenate["Ledger", P], T]:
    """Rebuild a ledger that a method finds damaged, and call the method again; a full disk or a lock is no damage."""

    def again_if_damaged(ledger: "Ledger", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return use(ledger, *args, **kwargs)
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, ValueError):
            ledger.rebuild()
            return use(ledger, *args, **kwargs)

    return again_if_damaged


class Ledger:
    """The published records of one run. For the holder of the run's lock; used by the loop and by one thread."""

    def __init__(
        self,
        path: Path,
        published: Callable[[], Iterable[Attempt]],
        count: int = 0,
        pending: Iterable[int] = (),
        unvouched: Callable[[Collection[int]], Iterable[Attempt]] = lambda _: (),
    ) -> None:
        """`published`: reads the attempts in the journal. `unvouched`: given numbers, reads all other attempts from the
        public folder, which agents can write. `count`, `pending`: see `ensure`. CoralError if no file can be made."""
        self._path = path
        self._published = published
        self._unvouched = unvouched
        self._count = count
        self._pending = set(pending)
        self._lock, self._rebuilding = RLock(), Lock()  # a method that needs both takes the second first
        self._suspicion: LedgerDamage | None = None
        self._rests_until = float("-inf")
        self._added: list[Attempt] | None = None  # records that are added during a rebuild; None outside of one
        self._losses: list[Restored] = []
        self._base = connect(":memory:")
        try:
            self._open()
        except sqlite3.DatabaseError:
            self._rebuild_or_fail()

    def close(self) -> None:
        self._base.close()

    def ensure(self, count: int, pending: Iterable[int]) -> None:
        """Rebuild the ledger unless it holds all `count` published attempts, those in `pending` not counted. CoralError
        if no file can be made."""
        self._count, self._pending = count, set(pending)
        try:
            ((known,),) = self._rows("SELECT count(*) FROM records")
            unsure = len(self.known(self._pending))
        except sqlite3.DatabaseError:
            known = unsure = -1
        if known - unsure != count - len(self._pending):
            self._rebuild_or_fail()

    @_rebuilt_if_damaged
    def add(self, attempt: Attempt) -> None:
        """Add a record, before its public file is written: from then on, a file with other content is known to be
        altered."""
        with self._lock:
            self._notice()
            if self._added is not None:
                self._added.append(attempt)
            self._count = max(self._count, attempt.order + 1)
            insert(self._base, [attempt])
            self._wrote()

    @_rebuilt_if_damaged
    def set_witnesses(self, witnesses: Mapping[int, Witness | None]) -> None:
        with self._lock:
            self._notice()
            with self._base:
                self._base.executemany(
                    "UPDATE records SET inode = ?, size = ?, changed = ? WHERE number = ?",
                    ((*(witness or (None, None, None)), number) for number, witness in witnesses.items()),
                )
            self._wrote()

    @property
    def is_suspect(self) -> bool:
        """Whether somebody changed the file, and it has not been rebuilt since."""
        with self._lock:
            self._notice()
            return bool(self._suspicion)

    def suspect(self, found: LedgerDamage) -> None:
        self._suspicion = found

    def repair(self) -> LedgerDamage | None:
        """Rebuild a ledger that somebody changed, and return what was done to it; None if no row differed. Too slow for
        the loop. Rebuilds are limited in time: not every touch of the file leads to one."""
        if not self.is_suspect or time.monotonic() < self._rests_until:
            return None
        began, found = time.monotonic(), self._suspicion
        try:
            altered = self.rebuild()
        finally:
            now = time.monotonic()
            self._rests_until = now + REST * (now - began)
        return found if found is not LedgerDamage.TOUCHED else LedgerDamage.ALTERED if altered else None

    def losses(self) -> list[Restored]:
        """Return reports of the records that neither the journal nor the ledger had at the last rebuild; each is
        returned once."""
        losses, self._losses = self._losses, []
        return losses

    def rebuild(self) -> bool:
        """Rebuild from the journal, and from the present rows where the journal has gaps. Returns whether any row
        differed.

        Witnesses are lost: the next check reads each public file. But it stays known which public files had been
        written, so that a file that was spoiled together with the ledger is reported.
        """
        with self._rebuilding:
            rebuilt = NewLedgerFile(self._path)
            try:
                with self._lock:
                    count, self._added = self._count, []
                rebuilt.add(self._readable())
                same = self._keep_rows(rebuilt, count)
                losses = rebuilt.add_unvouched(self._unvouched, count, self._pending)
                with self._lock:
                    rebuilt.add(self._added)
                    rebuilt.mark_written(self._written())
                    rebuilt.replace(self._path)
                    self._open()
                    self._suspicion, self._losses = None, losses
            finally:
                self._added = None
                rebuilt.discard()
            return not same

    def page(self, after: int, count: int) -> list[LedgerRow]:
        """Return the next `count` rows after the number `after`."""
        rows = self._rows(
            "SELECT number, record, inode, size, changed FROM records WHERE number > ? ORDER BY number LIMIT ?",
            (after, count),
        )
        return [LedgerRow(row[0], row[1], None if row[2] is None else (row[2], row[3], row[4])) for row in rows]

    @_rebuilt_if_damaged
    def outline(self, recent: int) -> list[Attempt]:
        """Return the few records that prompts mention: the baseline and the `recent` latest ones of every agent, in the
        order of publication."""
        found = self._attempts("kind = 'baseline'", ())
        for (agent,) in self._rows("SELECT DISTINCT agent FROM records WHERE agent != ''"):
            found += self._attempts("agent = ? AND kind != 'confirm' ORDER BY place DESC LIMIT ?", (agent, recent))
        return sorted(found, key=lambda attempt: attempt.order)

    def known(self, numbers: Iterable[int]) -> set[int]:
        """Return those of these numbers under which a record was published."""
        listed = ", ".join(str(int(number)) for number in numbers)  # one query: each check asks for hundreds
        return {number for (number,) in self._rows(f"SELECT number FROM records WHERE number IN ({listed})")}

    def duplicate_of(self, tree: str, tune: bool, epoch: int) -> Attempt | None:
        """Return the first attempt of this epoch with this tree that has a score: among trials of numbers if `tune`,
        else among the others."""
        where = "tree = ? AND (kind = 'tune') = ? AND epoch = ? AND score IS NOT NULL ORDER BY place LIMIT 1"
        return next(iter(self._attempts(where, (tree, tune, epoch))), None)

    def built_on(self, commit: str, epoch: int) -> Scored | None:
        """Return the first attempt of this epoch with this commit that has a score. Trials of numbers are left out: no
        attempt counts as built on one."""
        where = "commit_id = ? AND kind != 'tune' AND epoch = ? AND score IS NOT NULL ORDER BY place LIMIT 1"
        rows = self._rows(f"SELECT number, score FROM records WHERE {where}", (commit, epoch))
        return next((Scored(number, score) for number, score in rows), None)

    def _rebuild_or_fail(self) -> None:
        try:
            self.rebuild()
        except (sqlite3.DatabaseError, OSError) as error:
            self._base.close()
            raise CoralError(f"cannot write {self._path}: {error}", "see whether the disk has space") from error

    def _open(self) -> None:
        self._base.close()
        self._base = connect(self._path)
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if version == 0:
            make_tables(self._base)
        elif version != FORMAT:
            raise sqlite3.DatabaseError("it is of another version")
        # What a power failure loses is rebuilt from the journal.
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._seen = self._stamps()

    def _wrote(self) -> None:
        """Note the file's new stamps after a write of our own, unless the file was replaced meanwhile: `_notice` must
        find that."""
        now = self._stamps()
        if all(
            was is None or (stamp is not None and stamp[:2] == was[:2])
            for was, stamp in zip(self._seen, now, strict=True)
        ):
            self._seen = now

    def _notice(self) -> None:
        """Note whether somebody changed the file. The open file stays in use, whatever lies in its place."""
        now = self._stamps()
        if now == self._seen:
            return
        if [stamp and stamp[:2] for stamp in now] == [stamp and stamp[:2] for stamp in self._seen]:
            self._suspicion = self._suspicion or LedgerDamage.TOUCHED
        else:  # our writes go into a file that no longer has its name
            self._suspicion = LedgerDamage.REPLACED if self._path.exists() else LedgerDamage.DELETED
        self._seen = now
        with contextlib.suppress(sqlite3.DatabaseError):
            self._base.execute("PRAGMA shrink_memory")  # so that queries read the file as it is now

    def _stamps(self) -> tuple[tuple[int, ...] | None, ...]:
        """Return the stamps of the file and of its log, which show whether somebody else wrote to them."""
        return file_stamp(self._path), file_stamp(self._path.with_name(self._path.name + "-wal"))

    def _keep_rows(self, rebuilt: NewLedgerFile, count: int) -> bool:
        """Add the rows that the journal lacks. Returns whether all other rows agree with the journal."""
        missing = rebuilt.missing(count)
        same, ours = True, set[int]()
        try:
            for row in self._blocks():
                ours.add(row[0])
                if row[0] not in rebuilt.places and row[1] in missing and (kept := read_row(row)):
                    rebuilt.add([kept])
                    missing.remove(kept.order)
                elif row != rebuilt.row(row[0]):
                    same = same and row[0] in [attempt.number for attempt in self._added or ()]
        except sqlite3.DatabaseError:
            return False
        gone = rebuilt.places.keys() - ours - self._pending
        return same and all(rebuilt.places[number] >= count for number in gone)

    def _written(self) -> list[tuple[int]]:
        """Return the numbers of the records whose public file was seen whole, as far as the open file can be read; it
        may have lost its name."""
        with contextlib.suppress(sqlite3.DatabaseError):
            return self._rows("SELECT number FROM records WHERE inode IS NOT NULL")
        return []

    def _readable(self) -> Iterator[Attempt]:
        """Yield the journal's attempts, as far as the journal can be read."""
        with contextlib.suppress(CoralError):
            yield from self._published()

    def _blocks(self) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {COLUMNS} FROM records WHERE number > ? ORDER BY number LIMIT {BLOCK}"
        block = self._rows(query, (-1,))
        while block:
            yield from block
            block = self._rows(query, (block[-1][0],))

    def _attempts(self, where: str, values: tuple[object, ...]) -> list[Attempt]:
        rows = self._rows(f"SELECT record FROM records WHERE {where}", values)
        return [read(row[0]) for row in rows]

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(query, values).fetchall()
