"""What is published reaches the index without anybody waiting for it."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sample import attempt

from attempts.index import file
from attempts.index.file import NO_FILE, row_of
from attempts.index.index import Index
from attempts.store import Store
from coral.records.index_feed import IndexFeed


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path / "attempts")
    for number in range(3):
        made.publish(attempt(number, 1.0))
    return made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def held(store: Store) -> list[int]:
    """What the file itself has, whoever looks."""
    with closing(sqlite3.connect(store.root / file.NAME)) as base:
        return [number for (number,) in base.execute("SELECT number FROM records ORDER BY number")]


def test_it_catches_up_and_then_takes_what_comes(store: Store, pool: ThreadPoolExecutor) -> None:
    feed = IndexFeed(store.root, pool)
    for number in range(3, 40):
        store.publish(attempt(number, 1.0))
        feed.add(attempt(number, 1.0))
    pool.shutdown()
    with closing(Index(store.root)) as index:
        index.refresh()
    assert held(store) == list(range(40))


def test_a_file_that_is_held_delays_nobody_and_is_written_later(store: Store, pool: ThreadPoolExecutor) -> None:
    file.create(store.root, ((number, row_of(store.read(number), NO_FILE)) for number in range(3))).close()
    feed = IndexFeed(store.root, pool)
    wait_for_all(pool)
    with closing(sqlite3.connect(store.root / file.NAME, isolation_level=None)) as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT * FROM meta").fetchall()
        feed.add(attempt(3, 1.0))
        feed.add(attempt(4, 1.0))
        wait_for_all(pool)
        assert held(store) == [0, 1, 2]
    feed.add(attempt(5, 1.0))
    wait_for_all(pool)
    assert held(store) == [0, 1, 2, 3, 4, 5]


def wait_for_all(pool: ThreadPoolExecutor) -> None:
    """Until what was handed in before is done: as many that wait for each other as there are threads."""
    together = threading.Barrier(2)
    for future in [pool.submit(together.wait) for _ in range(2)]:
        future.result()
