"""The file `index.sqlite`. Anybody may have damaged it, so it is used only if it is whole, has Coral's format, and was
made for this folder since the machine started. Otherwise it is `Unusable`: a new one is made beside it, then renamed
over it.

SQLite keeps no journal for it, so that no other file comes and goes in the folder and no write waits for the disk.
During a change the value `home` in the file is "being written"; if a file is found so and is not locked, its writer was
killed.
"""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path

from attempts.files import Witness, hidden
from attempts.record import Attempt

FIELDS = (
    "number",
    "order",
    "agent",
    "kind",
    "verdict",
    "score",
    "tree",
    "commit",
    "parent",
    "published_at",
    "of",
    "reason",
    "epoch",
)
TEXT_FIELDS = ("title", "reason", "feedback")
FILE_COLUMNS = 3  # before the metrics and the text: the witness of the file
LARGEST = 2**63 - 1  # integer that a column holds
MOST_METRICS = 100  # of one attempt
Metrics = tuple[tuple[str, float], ...]
Row = tuple[int | float | str | Metrics | None, ...]
NO_FILE: Witness = (0, 0, 0)  # of a record that was read from no file


def row_of(attempt: Attempt, witness: Witness) -> Row:
    """Return the index row of a record. `witness`: inode, size and change time of the record's file, or NO_FILE."""
    number, order, *others = attrgetter(*FIELDS)(attempt)
    text = folded("\n".join(attrgetter(*TEXT_FIELDS)(attempt)))
    return (number, min(order, LARGEST), *others, *witness, numeric_metrics(attempt.metrics), text)


def numeric_metrics(metrics: object) -> Metrics:
    """Return the metrics that are numbers, sorted by name; at most MOST_METRICS."""
    pairs = metrics.items() if isinstance(metrics, Mapping) else ()
    numbers = [
        (name, float(value)) for name, value in pairs if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return tuple(sorted(numbers)[:MOST_METRICS])


def folded(text: str) -> str:
    """Return the text with all letters in one case, as texts are compared."""
    return text.casefold()


def row_in(rows: sqlite3.Connection, number: int) -> Row | None:
    statement = "SELECT records.*, text FROM records LEFT JOIN texts USING (number) WHERE number = ?"
    found: Row | None = rows.execute(statement, (number,)).fetchone()
    if found is None:
        return None
    metrics = rows.execute("SELECT name, value FROM metrics WHERE number = ? ORDER BY name", (number,)).fetchall()
    return (*found[:-1], tuple(metrics), found[-1])


def content(row: Row) -> Row:
    """Return what a row says of its record, without the witness of the file that it was read from."""
    return (*row[: -FILE_COLUMNS - 2], *row[-2:])


NAME = "index.sqlite"
FORMAT = 3
WRITER_PATIENCE = 0.25  # seconds to wait for a lock; the lock itself is held for milliseconds
PATIENCE = 1.5  # a reader's, longer: a writer who waits for somebody keeps new readers out
LONGEST = 10.0  # seconds for one statement: a foreign file may hold a view that never ends
STALE = 600.0  # seconds after which the process that was making an unfinished index has died
_STEPS = 100_000  # of SQLite's virtual machine, between looks at the clock

# The columns of a row. Metrics and text, the last two, have tables of their own: reading all the others is quick.
_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known(number INTEGER PRIMARY KEY);
CREATE TABLE records(
    number INTEGER PRIMARY KEY, ord, agent, kind, verdict, score REAL, tree, commit_id, parent, published_at,
    again_of, reason, epoch, inode, size, changed
);
CREATE TABLE texts(number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE metrics(number INTEGER, name TEXT, value REAL, PRIMARY KEY(number, name)) WITHOUT ROWID;
CREATE INDEX high ON records(kind, score DESC, ord);
CREATE INDEX low ON records(kind, score, ord);
CREATE INDEX own_high ON records(agent, kind, score DESC, ord);
CREATE INDEX own_low ON records(agent, kind, score, ord);
CREATE INDEX own ON records(agent, number);
CREATE INDEX candidate ON records(tree);
CREATE INDEX commits ON records(commit_id, ord);
CREATE INDEX verdicts ON records(verdict, ord);
CREATE INDEX measured ON metrics(name, value);
CREATE INDEX again ON records(again_of) WHERE again_of IS NOT NULL;
"""
# Which records hold which three characters. Entries may be stale: every text that is found is compared once more.
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, tokenize='trigram')"


class Unusable(Exception):  # noqa: N818
    """There is no index here that can be trusted. The message says why."""


def home(folder: Path) -> str:
    """Return the value that an index must have as `home`: its format, the folder that it was made for, and the
    machine's boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    found = folder.stat()
    return f"{FORMAT} {found.st_dev}:{found.st_ino} {boot}"


@contextlib.contextmanager
def foreign_database() -> Iterator[None]:
    """Turn whatever a damaged database can raise into Unusable."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, OverflowError, OSError) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error


def connect(folder: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """Open the index for reading. Raise Unusable if it is damaged, of another folder, or older than the machine's last
    start. `patience`: seconds to wait for a lock."""
    connection = _connected(folder, "ro", patience)
    with _closed_if_unusable(connection):
        _check(connection, folder)
    return connection


@contextlib.contextmanager
def _closed_if_unusable(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        with foreign_database():
            yield
    except Unusable:
        connection.close()
        raise


def write(folder: Path, change: Callable[[sqlite3.Connection], None], patience: float = WRITER_PATIENCE) -> None:
    """Change the index. Unusable if it cannot be written now; then nothing is lost, because a reader can add the same
    later."""

    def begin(connection: sqlite3.Connection) -> None:
        _check(connection, folder)
        set_value(connection, "home", "being written")

    with contextlib.closing(_connected(folder, "rw", patience)) as connection, foreign_database():
        # The lock is held from the first change to the close: nobody reads the file in between.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        for step in (begin, change, lambda connection: set_value(connection, "home", home(folder))):
            connection.execute("BEGIN IMMEDIATE")
            step(connection)
            connection.execute("COMMIT")


def create(folder: Path, rows: Iterable[tuple[int, Row | None]]) -> sqlite3.Connection:
    """Make a new index of these records (None for one that cannot be read); in memory if the folder cannot be
    written."""
    unfinished = folder / f".{NAME}.{os.getpid()}-{time.time_ns()}.tmp"
    _sweep(folder)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except OSError:
        return create_in_memory(rows)
    try:
        _filled(_open(unfinished), home(folder), rows).close()
        target = folder / NAME
        for suffix in ("-journal", "-wal", "-shm"):  # of the replaced index: SQLite would apply them to the new one
            target.with_name(NAME + suffix).unlink(missing_ok=True)
        if target.is_dir() and not target.is_symlink():
            target.rename(hidden(target))
        unfinished.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    return connect(folder)


def create_in_memory(rows: Iterable[tuple[int, Row | None]]) -> sqlite3.Connection:
    """Make a new index of these records for this process alone."""
    return _filled(_open(":memory:"), "in memory", rows)


def copy_in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    """Return a copy in memory, which can be changed."""
    copy = _open(":memory:")
    source.backup(copy)
    return copy


def put(connection: sqlite3.Connection, rows: Iterable[tuple[int, Row | None]]) -> None:
    """Add or replace the rows of records; None for a record whose file exists and cannot be read."""
    words = has_words(connection)
    for number, row in rows:
        drop(connection, [number])
        connection.execute("INSERT INTO known VALUES(?)", (number,))
        if row is not None:
            *columns, metrics, text = row
            connection.execute(f"INSERT INTO records VALUES({', '.join('?' * len(columns))})", columns)
            connection.execute("INSERT INTO texts VALUES(?, ?)", (number, text))
            held = [(number, *pair) for pair in metrics] if isinstance(metrics, tuple) else []
            connection.executemany("INSERT INTO metrics VALUES(?, ?, ?)", held)
            if words:
                connection.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (number, text))


def drop(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        for table in ("known", "records", "texts", "metrics"):
            connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))


def value(connection: sqlite3.Connection, name: str) -> str:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(found[0]) if found else ""


def set_value(connection: sqlite3.Connection, name: str, text: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (name, text))


def has_words(connection: sqlite3.Connection) -> bool:
    """Return whether the database has an index for text search: not every SQLite can make one."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchall())


def _open(database: str | Path, uri: bool = False, timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database without implicit transactions. `timeout` is how many seconds a statement waits for a lock."""
    # One thread at a time uses an index, but the garbage collector may close it in any other one.
    return sqlite3.connect(database, timeout, uri=uri, isolation_level=None, check_same_thread=False)


def _connected(folder: Path, mode: str, patience: float) -> sqlite3.Connection:
    path = folder / NAME
    with foreign_database():
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unusable("it is no regular file")
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = _open(uri, uri=True, timeout=patience)
    with _closed_if_unusable(connection):
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        if connection.execute("PRAGMA journal_mode=MEMORY").fetchone() != ("memory",):
            raise Unusable("it has a journal")
    limit(connection)
    return connection


def limit(connection: sqlite3.Connection) -> None:
    """Interrupt any statement that still runs LONGEST seconds from now."""
    until = time.monotonic() + LONGEST
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    strange = connection.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()
    if strange != (0,) or value(connection, "home") != home(folder):
        raise Unusable("it is not whole, or of another folder, or from before this machine was started")


def _filled(connection: sqlite3.Connection, marker: str, rows: Iterable[tuple[int, Row | None]]) -> sqlite3.Connection:
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-65536"):
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(f"BEGIN;{_TABLES}")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute(_WORDS)
    put(connection, rows)
    set_value(connection, "home", marker)
    connection.execute("COMMIT")
    return connection


def _sweep(folder: Path) -> None:
    """Remove unfinished indexes, older than STALE, whose makers were killed."""
    for path in folder.glob(f".{NAME}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > STALE:
                path.unlink()
