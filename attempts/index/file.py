"""The file `index.sqlite`: anybody may have damaged it, so it is believed only where it is whole, ours, and of this
folder since this machine started. Anything else is `Unusable`, and made anew beside it, then renamed over it.

It is written without a journal, so that nothing comes and goes in the folder and nothing waits for the disk. While it
is written it says so; whoever finds it saying so, unlocked, knows that its writer was killed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attempts.files import hidden
from attempts.index.row import COLUMNS, Row

NAME = "index.sqlite"
FORMAT = 1
WRITER_PATIENCE = 0.25  # seconds to wait for a lock; the lock itself is held for milliseconds
PATIENCE = 1.5  # a reader's, longer: a writer who waits for somebody keeps new readers out
LONGEST = 10.0  # seconds for one statement: a foreign file may hold what never ends
STALE = 600.0  # seconds after which a draft belongs to nobody
_STEPS = 100_000  # of the database's machine, between looks at the clock

_TABLES = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE known(number INTEGER PRIMARY KEY);
CREATE TABLE records(number INTEGER PRIMARY KEY, {", ".join(COLUMNS[1:-1])});
CREATE TABLE said(number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE INDEX high ON records(kind, score DESC, ord);
CREATE INDEX low ON records(kind, score, ord);
CREATE INDEX own_high ON records(agent, kind, score DESC, ord);
CREATE INDEX own_low ON records(agent, kind, score, ord);
CREATE INDEX own ON records(agent, number);
CREATE INDEX candidate ON records(tree);
CREATE INDEX commits ON records(commit_id, ord);
"""
# Which records hold which three characters: what is found is looked at once more, so that stale entries do no harm.
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, tokenize='trigram')"


class Unusable(Exception):  # noqa: N818
    """There is no index that can be believed here. The message says why."""


def home(folder: Path) -> str:
    """What an index must say of itself: its format, the folder it was made for, and since when this machine runs."""
    found = folder.stat()
    return f"{FORMAT} {found.st_dev}:{found.st_ino} {_boot()}"


@contextlib.contextmanager
def trusting_nothing() -> Iterator[None]:
    """Whatever a database that is not ours makes of a statement is Unusable, and nothing worse."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, OverflowError, OSError) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error


def opened(folder: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """The index of a folder, to be read."""
    connection = _connected(folder, "ro", patience)
    try:
        with trusting_nothing():
            _check(connection, folder)
    except Unusable:
        connection.close()
        raise
    return connection


def write(folder: Path, change: Callable[[sqlite3.Connection], None], patience: float = WRITER_PATIENCE) -> None:
    """Change the index. Unusable if it cannot be written now, whatever the reason; then nothing is lost but time."""
    connection = _connected(folder, "rw", patience)
    try:
        with trusting_nothing():
            # Kept from the first change to the close: nobody sees the file in between.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
            _check(connection, folder)
            say(connection, "home", "being written")
            connection.execute("COMMIT")
            for step in (change, lambda connection: say(connection, "home", home(folder))):
                connection.execute("BEGIN IMMEDIATE")
                step(connection)
                connection.execute("COMMIT")
    finally:
        connection.close()


def made(folder: Path, rows: Iterable[tuple[int, Row | None]]) -> sqlite3.Connection:
    """A new index of these records (None where one cannot be read); where the folder is closed, for this process."""
    rows = iter(rows)
    unfinished = folder / f".{NAME}.{os.getpid()}-{time.time_ns()}.tmp"
    _sweep(folder)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except OSError:
        return in_memory(rows)
    try:
        _filled(sqlite3.connect(unfinished, isolation_level=None), home(folder), rows).close()
        for left in ("-journal", "-wal", "-shm"):  # of what is replaced: they would be applied to what replaces it
            folder.joinpath(NAME + left).unlink(missing_ok=True)
        if folder.joinpath(NAME).is_dir() and not folder.joinpath(NAME).is_symlink():
            folder.joinpath(NAME).rename(hidden(folder / NAME))
        unfinished.replace(folder / NAME)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    return opened(folder)


def in_memory(rows: Iterable[tuple[int, Row | None]]) -> sqlite3.Connection:
    """The same for this process alone."""
    return _filled(sqlite3.connect(":memory:", isolation_level=None), "in memory", iter(rows))


def copied(source: sqlite3.Connection) -> sqlite3.Connection:
    """The same in memory, where it can be changed."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    source.backup(copy)
    return copy


def put(connection: sqlite3.Connection, rows: Iterable[tuple[int, Row | None]]) -> None:
    """Take in records, new or once more; None where one is there and cannot be read."""
    marks, words = ", ".join("?" * (len(COLUMNS) - 1)), has_words(connection)
    for number, row in rows:
        drop(connection, [number])
        connection.execute("INSERT INTO known VALUES(?)", (number,))
        if row is not None:
            connection.execute(f"INSERT INTO records VALUES({marks})", row[:-1])
            connection.execute("INSERT INTO said VALUES(?, ?)", (number, row[-1]))
            if words:
                connection.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (number, row[-1]))


def drop(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        for table in ("known", "records", "said"):
            connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))


def value(connection: sqlite3.Connection, name: str) -> str:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(found[0]) if found else ""


def say(connection: sqlite3.Connection, name: str, text: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (name, text))


def has_words(connection: sqlite3.Connection) -> bool:
    """Whether the search has an index of its own: not every SQLite can make one."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchall())


def _connected(folder: Path, mode: str, patience: float) -> sqlite3.Connection:
    path = folder / NAME
    with trusting_nothing():
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unusable("it is no regular file")
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)
    try:
        with trusting_nothing():
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            if connection.execute("PRAGMA journal_mode=MEMORY").fetchone() != ("memory",):
                raise Unusable("it has a journal")
    except Unusable:
        connection.close()
        raise
    limit(connection)
    return connection


def limit(connection: sqlite3.Connection) -> None:
    """What is asked from now on ends after so long, counted from here."""
    until = time.monotonic() + LONGEST
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    strange = connection.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()
    if strange != (0,) or value(connection, "home") != home(folder):
        raise Unusable("it is not whole, or of another folder, or from before this machine was started")


def _filled(connection: sqlite3.Connection, marker: str, rows: Iterator[tuple[int, Row | None]]) -> sqlite3.Connection:
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-65536"):
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(f"BEGIN;{_TABLES}")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute(_WORDS)
    put(connection, rows)
    say(connection, "home", marker)
    connection.execute("COMMIT")
    return connection


def _sweep(folder: Path) -> None:
    """Remove what killed makers of an index left."""
    for path in folder.glob(f".{NAME}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > STALE:
                path.unlink()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
