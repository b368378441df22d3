"""What was published, as the supervisor knows it: never read from the folder that agents can reach.

A private SQLite file beside the journal and made from it: whenever the two differ, or the file is damaged, it is made
again. With every record stands its witness, by which a change of the public file is noticed without reading it.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeVar

from attempts.files import Witness
from attempts.record import Attempt, Direction
from coral.errors import CoralError
from coral.fleet.events import Restored
from coral.records.ledger_file import (
    COLUMNS,
    FORMAT,
    LedgerDraft,
    connect,
    file_stamp,
    insert,
    make_tables,
    read,
    read_row,
)

T = TypeVar("T")

BLOCK = 500  # rows that are compared at a time: for so long, others wait
REST = 4.0  # times as long as it took to make it again, until it is made again once more: a touch is quickly done
TOUCHED, ALTERED = "was touched", "was altered"
_RANKED = "score IS NOT NULL AND kind IN ('real', 'confirm')"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A record as it is kept, and its witness; none while its file was never seen whole."""

    number: int
    record: str
    witness: Witness | None

    @property
    def attempt(self) -> Attempt:
        """Read only where it is needed: a scrub passes by thousands. ValueError if somebody spoiled it."""
        return read(self.record)


class Ledger:
    """The published records of one run, for the one who holds the run's lock; used by the loop and by one thread."""

    def __init__(
        self,
        path: Path,
        published: Callable[[], Iterable[Attempt]],
        count: int = 0,
        pending: Iterable[int] = (),
        unvouched: Callable[[Collection[int]], Iterable[Attempt]] = lambda _: (),
    ) -> None:
        """`published` tells from the journal every publication again that it still knows; `unvouched`, from where
        agents can write, those with other numbers. For `count` and `pending` see `ensure`. CoralError where no file
        can be made."""
        self._path = path
        self._published = published
        self._unvouched = unvouched
        self._count = count
        self._pending = set(pending)
        self._lock, self._making = RLock(), Lock()  # of the two, the second is taken first
        self._doubt = ""
        self._rests_until = float("-inf")
        self._since: list[Attempt] | None = None  # what is entered while it is made again
        self._losses: list[Restored] = []
        self._base = connect(":memory:")
        try:
            self._open()
        except sqlite3.DatabaseError:
            self._begin_again()

    def close(self) -> None:
        self._base.close()

    def ensure(self, count: int, pending: Iterable[int]) -> None:
        """`count` publications were decided, and those of `pending` may have to be done again: know all the others.
        CoralError as above."""
        self._count, self._pending = count, set(pending)
        try:
            ((known,),) = self._rows("SELECT count(*) FROM records")
            unsure = len(self.known(self._pending))
        except sqlite3.DatabaseError:
            known = unsure = -1
        if known - unsure != count - len(self._pending):
            self._begin_again()

    def add(self, attempt: Attempt) -> None:
        """Before the record is written: from then on, a file that says anything else is not ours."""
        self._heal(lambda: self._enter(attempt))

    def set_witnesses(self, witnesses: Mapping[int, Witness | None]) -> None:
        self._heal(lambda: self._set_witnesses(witnesses))

    @property
    def is_suspect(self) -> bool:
        """Whether somebody was at the file, and it is not made again yet."""
        with self._lock:
            self._notice()
            return bool(self._doubt)

    def suspect(self, found: str) -> None:
        self._doubt = found

    def repair(self) -> str:
        """What somebody did to the file since we last looked, in words; it is there again. It takes long: nothing for
        the loop. Whoever touches the file again and again is not followed each time."""
        if not self.is_suspect or time.monotonic() < self._rests_until:
            return ""
        began, doubt = time.monotonic(), self._doubt
        try:
            altered = self.rebuild()
        finally:
            now = time.monotonic()
            self._rests_until = now + REST * (now - began)
        return doubt if doubt != TOUCHED else ALTERED if altered else ""

    def losses(self) -> list[Restored]:
        """What neither the journal nor the ledger knew when it was made again; told once."""
        losses, self._losses = self._losses, []
        return losses

    def rebuild(self) -> bool:
        """From the journal; what that lacks, from the rows that were there. Returns whether those said anything else.

        The witnesses are lost: the next look at each file reads it.
        """
        with self._making:
            rebuild = LedgerDraft(self._path)
            try:
                with self._lock:
                    count, self._since = self._count, []
                rebuild.add(self._readable())
                same = self._keep_rows(rebuild, count)
                losses = rebuild.add_unvouched(self._unvouched, count, self._pending)
                with self._lock:
                    rebuild.add(self._since)
                    rebuild.replace(self._path)
                    self._open()
                    self._doubt, self._losses = "", losses
            finally:
                self._since = None
                rebuild.discard()
            return not same

    def page(self, after: int, count: int) -> list[LedgerRow]:
        """The next records by number."""
        rows = self._rows(
            "SELECT number, record, inode, size, changed FROM records WHERE number > ? ORDER BY number LIMIT ?",
            (after, count),
        )
        return [LedgerRow(row[0], row[1], None if row[2] is None else (row[2], row[3], row[4])) for row in rows]

    def outline(self, direction: Direction, top: int, recent: int) -> list[Attempt]:
        """As few records as tell where everybody stands: the first `top`, and of every agent the latest `recent`,
        the best, the best before those, and the last improvement; in the order of publication."""
        return self._heal(lambda: self._outline(direction, top, recent))

    def known(self, numbers: Iterable[int]) -> set[int]:
        """Those of the numbers under which something was published."""
        listed = ", ".join(
            str(int(number)) for number in numbers
        )  # in one question: hundreds are asked for at each look
        return {number for (number,) in self._rows(f"SELECT number FROM records WHERE number IN ({listed})")}

    def duplicate_of(self, tree: str, tune: bool) -> tuple[int, float] | None:
        """The first attempt with this tree that has a score: its number and score."""
        rows = self._rows(
            "SELECT number, score FROM records WHERE tree = ? AND score IS NOT NULL AND (kind = 'tune') = ? "
            "ORDER BY place LIMIT 1",
            (tree, tune),
        )
        return next(((number, score) for number, score in rows), None)

    def _begin_again(self) -> None:
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
        # What a loss of power takes with it is made again from the journal.
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._seen = self._look()

    def _enter(self, attempt: Attempt) -> None:
        with self._lock:
            self._notice()
            if self._since is not None:
                self._since.append(attempt)
            self._count = max(self._count, attempt.order + 1)
            insert(self._base, [attempt])
            self._wrote()

    def _set_witnesses(self, witnesses: Mapping[int, Witness | None]) -> None:
        with self._lock:
            self._notice()
            with self._base:
                self._base.executemany(
                    "UPDATE records SET inode = ?, size = ?, changed = ? WHERE number = ?",
                    ((*(held or (None, None, None)), number) for number, held in witnesses.items()),
                )
            self._wrote()

    def _wrote(self) -> None:
        """What we did to the file ourselves is seen; that it was taken away meanwhile is still to be noticed."""
        now = self._look()
        if all(was is None or (it is not None and it[:2] == was[:2]) for was, it in zip(self._seen, now, strict=True)):
            self._seen = now

    def _notice(self) -> None:
        """Whether somebody was at the file. What we hold of it goes on meanwhile, whatever lies in its place."""
        if self._look() == self._seen:
            return
        if not self._is_moved():
            self._doubt = self._doubt or TOUCHED
        else:
            self._doubt = "was replaced" if self._path.exists() else "was deleted"
        self._seen = self._look()
        with contextlib.suppress(sqlite3.DatabaseError):
            self._base.execute("PRAGMA shrink_memory")  # what is asked is what the file says now

    def _look(self) -> tuple[tuple[int, ...] | None, ...]:
        """By which it is noticed that somebody else wrote to the file, or to what is to be written to it."""
        return file_stamp(self._path), file_stamp(self._path.with_name(self._path.name + "-wal"))

    def _is_moved(self) -> bool:
        """Whether what we write goes into a file that nobody will find."""
        return [witness and witness[:2] for witness in self._look()] != [
            witness and witness[:2] for witness in self._seen
        ]

    def _keep_rows(self, rebuild: LedgerDraft, count: int) -> bool:
        """Give the draft the rows that the journal lacks. Returns whether all the others are as it says."""
        missing = rebuild.missing(count)
        same, ours = True, set[int]()
        try:
            for row in self._blocks():
                ours.add(row[0])
                if row[0] not in rebuild.places and row[1] in missing and (kept := read_row(row)):
                    rebuild.add([kept])
                    missing.remove(kept.order)
                elif row != rebuild.row(row[0]):
                    same = same and row[0] in [attempt.number for attempt in self._since or ()]
        except sqlite3.DatabaseError:
            return False
        gone = rebuild.places.keys() - ours - self._pending
        return same and all(rebuild.places[number] >= count for number in gone)

    def _readable(self) -> Iterator[Attempt]:
        """What the journal tells, as far as it can be read."""
        with contextlib.suppress(CoralError):
            yield from self._published()

    def _blocks(self) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {COLUMNS} FROM records WHERE number > ? ORDER BY number LIMIT {BLOCK}"
        block = self._rows(query, (-1,))
        while block:
            yield from block
            block = self._rows(query, (block[-1][0],))

    def _outline(self, direction: Direction, top: int, recent: int) -> list[Attempt]:
        order = "score DESC, place" if direction is Direction.MAXIMIZE else "score, place"
        found = self._attempts("kind = 'baseline'", ())
        found += self._attempts(f"{_RANKED} ORDER BY {order} LIMIT ?", (top,))
        for (agent,) in self._rows("SELECT DISTINCT agent FROM records WHERE agent != ''"):
            latest = self._attempts("agent = ? ORDER BY place DESC LIMIT ?", (agent, recent))
            best = f"agent = ? AND {_RANKED} AND place < ? ORDER BY {order} LIMIT 1"
            for before in (latest[-1].order, latest[0].order + 1):
                found += self._attempts(best, (agent, before))
            found += self._attempts(
                "agent = ? AND verdict = 'improved' AND kind != 'tune' ORDER BY place DESC LIMIT 1", (agent,)
            )
            found += latest
        return sorted({attempt.number: attempt for attempt in found}.values(), key=lambda attempt: attempt.order)

    def _heal(self, use: Callable[[], T]) -> T:
        """What is found damaged while it is used is made again; a full disk or a lock is no damage."""
        try:
            return use()
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, ValueError):
            self.rebuild()
            return use()

    def _attempts(self, where: str, values: tuple[object, ...]) -> list[Attempt]:
        rows = self._rows(f"SELECT record FROM records WHERE {where}", values)
        return [read(row[0]) for row in rows]

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(query, values).fetchall()
