"""What was published, as the supervisor knows it: never read from the folder that agents can reach.

A private SQLite file beside the journal and made from it: whenever the two differ, or the file is damaged, it is made
again. With every record stands its witness, by which a change of the public file is noticed without reading it.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from attempts.files import Witness
from attempts.record import Attempt, Direction, attempt_from_dict, to_dict
from coral.errors import CoralError

T = TypeVar("T")

FORMAT = 1
BUSY_SECONDS = 1.0
# In one piece: a supervisor that is killed in between leaves no file that has the version and lacks the tables.
_SCHEMA = f"""
BEGIN;
PRAGMA user_version = {FORMAT};
CREATE TABLE records (
    number INTEGER PRIMARY KEY, place INTEGER NOT NULL, agent TEXT NOT NULL, tree TEXT NOT NULL, kind TEXT NOT NULL,
    verdict TEXT NOT NULL, score REAL, record TEXT NOT NULL, inode INTEGER, size INTEGER, changed INTEGER
);
CREATE INDEX by_agent ON records (agent, place);
CREATE INDEX by_tree ON records (tree, place) WHERE score IS NOT NULL;
CREATE INDEX by_score ON records (score, place) WHERE score IS NOT NULL AND kind IN ('real', 'confirm');
CREATE INDEX by_agent_and_score ON records (agent, score, place)
    WHERE score IS NOT NULL AND kind IN ('real', 'confirm');
COMMIT;
"""
_RANKED = "score IS NOT NULL AND kind IN ('real', 'confirm')"


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it is kept, and its witness; none while its file was never seen whole."""

    number: int
    record: str
    witness: Witness | None

    @property
    def attempt(self) -> Attempt:
        """Read only where it is needed: a scrub passes by thousands. ValueError if somebody spoiled it."""
        return _read(self.record)


class Ledger:
    """The published records of one run, for the one who holds the run's lock."""

    def __init__(self, path: Path, published: Callable[[], Iterable[Attempt]]) -> None:
        """`published` tells every publication again, from the journal. CoralError where no file can be made."""
        self._path = path
        self._published = published
        self._wrong = ""
        try:
            self._open()
        except sqlite3.DatabaseError:
            try:
                self.make_again()
            except (sqlite3.DatabaseError, OSError) as error:
                raise CoralError(f"cannot write {path}: {error}", "see whether the disk has space") from error

    def close(self) -> None:
        self._base.close()

    def ensure(self, count: int, pending: Iterable[int]) -> None:
        """`count` publications were decided, and those of `pending` may have to be done again: know all the others."""
        doubtful = list(pending)
        try:
            ((known,),) = self._rows("SELECT count(*) FROM records")
            unsure = len(self.known(doubtful))
        except sqlite3.DatabaseError:
            known = unsure = -1
        if known - unsure != count - len(doubtful):
            self.make_again()

    def enter(self, attempt: Attempt) -> None:
        """Before the record is written: from then on, a file that says anything else is not ours."""
        self._heal(lambda: self._enter([attempt]))

    def set_witnesses(self, witnesses: Mapping[int, Witness | None]) -> None:
        self._heal(lambda: self._set_witnesses(witnesses))

    def mend(self) -> str:
        """What somebody did to the file since we last looked, in words; it is there again."""
        self._check()
        wrong, self._wrong = self._wrong, ""
        return wrong

    def make_again(self) -> None:
        """From the journal. The witnesses are lost: the next look at each file reads it."""
        base: sqlite3.Connection | None = getattr(self, "_base", None)
        if base is not None:
            base.close()
        self._unlink()
        self._open()
        self._enter(self._published())

    def page(self, after: int, count: int) -> list[Row]:
        """The next records by number."""
        rows = self._rows(
            "SELECT number, record, inode, size, changed FROM records WHERE number > ? ORDER BY number LIMIT ?",
            (after, count),
        )
        return [Row(row[0], row[1], None if row[2] is None else (row[2], row[3], row[4])) for row in rows]

    def outline(self, direction: Direction, top: int, recent: int) -> list[Attempt]:
        """As few records as tell where everybody stands: the first `top`, and of every agent the latest `recent`,
        the best, the best before those, and the last improvement; in the order of publication."""
        return self._heal(lambda: self._outline(direction, top, recent))

    def known(self, numbers: Iterable[int]) -> set[int]:
        """Those of the numbers under which something was published."""
        query = "SELECT number FROM records WHERE number = ?"
        return {number for each in numbers for (number,) in self._rows(query, (each,))}

    def twin(self, tree: str, tune: bool) -> tuple[int, float] | None:
        """The first attempt with this tree that has a score: its number and score."""
        rows = self._rows(
            "SELECT number, score FROM records WHERE tree = ? AND score IS NOT NULL AND (kind = 'tune') = ? "
            "ORDER BY place LIMIT 1",
            (tree, tune),
        )
        return next(((number, score) for number, score in rows), None)

    def _open(self) -> None:
        self._base = sqlite3.connect(self._path, timeout=BUSY_SECONDS)
        # One process uses it: with the lock kept, no shared memory is needed, which some file systems lack.
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._base.executescript("PRAGMA journal_mode = WAL;" + _SCHEMA)
        elif version != FORMAT:
            self.make_again()
        # What a loss of power takes with it is made again from the journal.
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._seen = self._look()

    def _enter(self, attempts: Iterable[Attempt]) -> None:
        with self._base:
            self._base.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
                (
                    (
                        *(each.number, each.order, each.agent, each.tree, each.kind.value, each.verdict.value),
                        *(each.score, json.dumps(to_dict(each), allow_nan=False)),
                    )
                    for each in attempts
                ),
            )

        self._seen = self._look()

    def _set_witnesses(self, witnesses: Mapping[int, Witness | None]) -> None:
        with self._base:
            self._base.executemany(
                "UPDATE records SET inode = ?, size = ?, changed = ? WHERE number = ?",
                ((*(held or (None, None, None)), number) for number, held in witnesses.items()),
            )
        self._seen = self._look()

    def _check(self) -> None:
        if self._look() == self._seen:
            return
        if not self._is_moved():
            count, before = self._digest()
            self.make_again()
            self._wrong = self._wrong if self._digest(count) == (count, before) else "was altered"
            return
        self._wrong = "was replaced" if self._path.exists() else "was deleted"
        try:
            self._copy()  # nobody but us has the file that we hold
        except (sqlite3.DatabaseError, OSError):
            self.make_again()

    def _look(self) -> tuple[tuple[int, ...] | None, ...]:
        """By which it is noticed that somebody else wrote to the file, or to what is to be written to it."""
        return _stat(self._path), _stat(self._path.with_name(self._path.name + "-wal"))

    def _is_moved(self) -> bool:
        """Whether what we write goes into a file that nobody will find."""
        return [each and each[:2] for each in self._look()] != [each and each[:2] for each in self._seen]

    def _digest(self, most: int = -1) -> tuple[int, bytes]:
        """How many records the file has, at most the first so many, and what tells them from any others."""
        rows = "SELECT number, place, agent, tree, kind, verdict, score, record FROM records ORDER BY place LIMIT ?"
        count, digest = 0, sha256()
        try:
            self._base.execute("PRAGMA shrink_memory")  # what is asked is what the file says now
            for row in self._base.execute(rows, (most,)):
                count += 1
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        except sqlite3.DatabaseError:
            return -1, b""
        return count, digest.digest()

    def _copy(self) -> None:
        draft = self._path.with_name(f".{self._path.name}")
        draft.unlink(missing_ok=True)
        self._base.execute("VACUUM INTO ?", (str(draft),))
        self._base.close()
        self._unlink()
        draft.rename(self._path)
        self._open()

    def _unlink(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

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
        return sorted({each.number: each for each in found}.values(), key=lambda each: each.order)

    def _heal(self, use: Callable[[], T]) -> T:
        """What is found damaged while it is used is made again; a full disk or a lock is no damage."""
        self._check()
        try:
            return use()
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, ValueError):
            self.make_again()
            return use()

    def _attempts(self, where: str, values: tuple[object, ...]) -> list[Attempt]:
        rows = self._rows(f"SELECT record FROM records WHERE {where}", values)
        return [_read(row[0]) for row in rows]

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        return self._base.execute(query, values).fetchall()


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def _read(record: str) -> Attempt:
    return attempt_from_dict(json.loads(record))
