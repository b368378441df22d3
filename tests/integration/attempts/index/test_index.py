"""The index may be damaged, old, held or missing: what it answers is always what reading every record would."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from records import readable
from sample import attempt
from strangers import closed

from attempts.index import file, query
from attempts.index.index import MANY, SETTLED, Index, mismatches
from attempts.index.query import Wanted
from attempts.record import Direction, to_dict
from attempts.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path / "attempts")
    for number in range(5):
        made.publish(attempt(number, 1.0 + number, feedback=f"Gap of {number} found"))
    return made


def numbers(folder: Path, wanted: Wanted | None = None) -> list[int]:
    """What somebody sees who looks now."""
    with closing(Index(folder)) as index:
        index.refresh()
        return index.ask(lambda rows: list(query.recent(rows, wanted or Wanted())))


def settle(folder: Path) -> None:
    """As if the folder had last been changed long ago; only one of its two times can be set back by us."""
    numbers(folder)
    with sqlite3.connect(folder / file.NAME) as base:
        found = folder.stat()
        times = f"{max(found.st_mtime_ns, found.st_ctime_ns)} {found.st_mtime_ns} {found.st_ctime_ns}"
        base.execute("INSERT OR REPLACE INTO meta VALUES('settled', ?)", (times,))
    base.close()


@pytest.mark.parametrize("is_writable", [True, False])
def test_any_thread_may_collect_an_index_that_another_one_used(store, is_writable: bool) -> None:
    used: list[Index] = []

    def use() -> None:
        used.append(Index(store.root))
        assert used[0].ask(query.last) == 4

    with nullcontext() if is_writable else closed(store.root), ThreadPoolExecutor(1) as threads:
        threads.submit(use).result()
    used.pop().close()  # as the garbage collector does


OPENED: list[set[str]] = []  # who asks for the names of all files that this process opens


def _record_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for opened in OPENED:
            opened.add(os.path.basename(str(arguments[0])))  # noqa: PTH119


sys.addaudithook(_record_opened)


def reads(folder: Path, look: Callable[[], object]) -> int:
    """How many records are opened while somebody looks. Their times do not tell: many a disk keeps none of reading."""
    opened: set[str] = set()
    OPENED.append(opened)
    look()
    OPENED.remove(opened)
    return sum(path.name in opened for path in folder.glob("*.json"))


# when it is fresh


def test_what_is_published_deleted_and_damaged_is_seen_at_once(store: Store) -> None:
    settle(store.root)
    assert numbers(store.root) == [4, 3, 2, 1, 0]
    store.publish(attempt(7, 2.0))
    assert numbers(store.root) == [7, 4, 3, 2, 1, 0]
    (store.root / "000002.json").unlink()
    assert numbers(store.root) == [7, 4, 3, 1, 0]
    (store.root / "000003.json").write_text("{")
    (store.root / "000005.json").write_text("{")
    with closing(Index(store.root)) as index:
        assert index.ask(query.totals).unreadable == 1
        index.audit()
        assert index.ask(query.totals).unreadable == 2
    store.publish(attempt(5, 2.0))
    assert numbers(store.root) == [7, 5, 4, 1, 0]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("publish", "delete", "damage", "add", "lose", "settle")), st.integers(0, 6)))
)
def test_in_any_order_of_events_it_knows_what_is_in_the_folder(tmp_path_factory, events: list[tuple[str, int]]) -> None:
    folder = tmp_path_factory.mktemp("attempts")
    store, adding = Store(folder), Index(folder)
    for what, number in events:
        path = folder / f"{number:06d}.json"
        match what:
            case "publish":
                store.publish(attempt(number, 1.0))
            case "delete":
                path.unlink(missing_ok=True)
            case "damage":
                path.unlink(missing_ok=True)
                path.write_text("{")
                with closing(Index(folder)) as index:
                    index.audit()  # a name that stays says nothing
            case "add":
                store.publish(attempt(number, 1.0))
                adding.add([attempt(number, 1.0)])
            case "lose":
                (folder / file.NAME).unlink(missing_ok=True)
            case "settle":
                settle(folder)
        assert numbers(folder) == [record.number for record in reversed(readable(store))]
    adding.close()


def test_what_did_not_change_is_not_read_again(store: Store) -> None:
    assert reads(store.root, lambda: numbers(store.root)) == 5
    assert reads(store.root, lambda: numbers(store.root)) == 0
    store.publish(attempt(5, 2.0))
    assert reads(store.root, lambda: numbers(store.root)) == 1


def test_a_folder_that_was_changed_just_now_is_not_taken_for_settled(store: Store, monkeypatch) -> None:
    monkeypatch.setattr("attempts.index.index.SETTLED", 3600.0)  # however long the machine takes from here to there
    numbers(store.root)
    with sqlite3.connect(store.root / file.NAME) as base:
        assert base.execute("SELECT * FROM meta WHERE name = 'settled'").fetchall() == []
        monkeypatch.setattr("attempts.index.index.SETTLED", -SETTLED)
        numbers(store.root)
        assert len(base.execute("SELECT * FROM meta WHERE name = 'settled'").fetchall()) == 1
    base.close()
    settle(store.root)
    os.rename(store.root / "000004.json", store.root / "000006.json")  # noqa: PTH104
    os.utime(store.root, ns=(0, 0))
    assert numbers(store.root) == [3, 2, 1, 0]


def test_adding_what_was_published_reads_nothing_and_is_complete(store: Store) -> None:
    numbers(store.root)
    for number in (6, 5):
        store.publish(attempt(number, 9.0))
    with closing(Index(store.root)) as index:
        assert index.add([attempt(6, 9.0), attempt(5, 9.0)])
    assert reads(store.root, lambda: numbers(store.root)) == 0
    assert numbers(store.root) == [6, 5, 4, 3, 2, 1, 0]


def test_what_is_added_is_what_a_reader_of_the_file_finds(store: Store) -> None:
    odd = replace(attempt(5, 9.0), title="a \x07 title\n of  two lines", reason="why\r\nso", feedback="half a \ud800")
    numbers(store.root)
    store.publish(odd)
    with closing(Index(store.root)) as index:
        assert index.add([odd])
        assert index.agrees(store.read(5))
    assert mismatches(store.root, {5: json.dumps(to_dict(odd))}) == ([], [])


def test_a_record_that_was_altered_in_place_is_announced_from_what_was_read(store: Store) -> None:
    with closing(Index(store.root)) as index:
        index.refresh()
        assert all(index.agrees(record) for record in readable(store))
        (store.root / "000001.json").write_text(json.dumps(to_dict(attempt(1, 99.0))))
        assert not index.agrees(store.read(1))
        assert not index.agrees(attempt(17, 1.0))
        index.audit()
        assert index.agrees(store.read(1))


def test_only_records_whose_file_was_touched_are_read_by_an_audit(store: Store) -> None:
    numbers(store.root)
    base = sqlite3.connect(store.root / file.NAME)
    with base:
        base.execute("UPDATE records SET score = 77.0")
        base.execute("UPDATE records SET changed = 0 WHERE number = 2")
    with closing(Index(store.root)) as index:
        index.audit()
    scores = [score for (score,) in base.execute("SELECT score FROM records ORDER BY number")]
    assert scores == [77.0, 77.0, 3.0, 77.0, 77.0]
    base.close()


def test_what_is_shown_is_what_the_files_say_in_the_order_of_what_they_say(store: Store) -> None:
    numbers(store.root)

    def best() -> list[tuple[int, float | None]]:
        with closing(Index(store.root)) as index:
            found = index.with_records(lambda rows: query.ranked(rows, Wanted(), Direction.MAXIMIZE, 3))
            return [(record.number, record.score) for _, record in found]

    assert best() == [(4, 5.0), (3, 4.0), (2, 3.0)]
    (store.root / "000004.json").write_text(json.dumps(to_dict(attempt(4, 3.5))))
    assert best() == [(3, 4.0), (4, 3.5), (2, 3.0)]
    (store.root / "000003.json").write_text("{")
    assert best() == [(4, 3.5), (2, 3.0), (1, 2.0)]


def test_one_that_is_far_behind_is_made_anew_and_says_so(store: Store) -> None:
    numbers(store.root)
    for number in range(5, MANY + 7):
        (store.root / f"{number:06d}.json").write_text("{")
    announced: list[int] = []
    with closing(Index(store.root, announced.append)) as index:
        assert index.ask(query.totals).unreadable == MANY + 2
    assert announced == [MANY + 7]


# whatever lies there


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
STATEMENTS = {
    "another schema": ("DROP TABLE records", "CREATE TABLE records(x)"),
    "another type": ("UPDATE records SET score = x'00', ord = 'x'", "DELETE FROM meta WHERE name = 'settled'"),
    "another format": ("UPDATE meta SET value = '0' || value WHERE name = 'home'",),
    "half written": ("UPDATE meta SET value = 'being written' WHERE name = 'home'",),
    "endless": ("DROP TABLE known", f"CREATE VIEW known AS {ENDLESS.replace('i FROM n', 'i AS number FROM n')}"),
    "endless home": ("DROP TABLE meta", f"CREATE VIEW meta AS SELECT 'home' AS name, i AS value FROM ({ENDLESS})"),
    "another journal": ("PRAGMA journal_mode=WAL",),
    "no words": ("DROP TABLE words",),
}
HELD = {"locked for ever": ("BEGIN EXCLUSIVE",), "read for ever": ("BEGIN", "SELECT * FROM meta")}


@contextmanager
def harmed(path: Path, harm: str) -> Iterator[None]:
    """The index damaged, or held by somebody else meanwhile."""
    content = path.read_bytes()
    match harm:
        case "garbage":
            path.write_bytes(b"\x00\xff not a database" * 1000)
        case "empty":
            path.write_bytes(b"")
        case "torn":
            path.write_bytes(content[: len(content) // 2])
        case "holes":
            path.write_bytes(content[: 4096 * 3] + b"\x55" * (len(content) - 4096 * 3))
        case "folder":
            path.unlink()
            (path / "within").mkdir(parents=True)
        case "link":
            path.rename(path.with_name("elsewhere"))
            path.symlink_to(path.with_name("elsewhere"))
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case _:
            with closing(sqlite3.connect(path, isolation_level=None)) as base:
                for statement in (STATEMENTS | HELD)[harm]:
                    base.execute(statement).fetchall()
                if harm in HELD:
                    yield
                    return
    yield


HARMS = ["garbage", "empty", "torn", "holes", "folder", "link", "pipe", *STATEMENTS, *HELD]


@pytest.mark.parametrize("harm", HARMS)
def test_the_answer_is_right_with_any_index(harm: str, store: Store, monkeypatch) -> None:
    monkeypatch.setattr(file, "PATIENCE", 0.05)
    monkeypatch.setattr(file, "LONGEST", 0.3)
    numbers(store.root)
    store.publish(attempt(9, 3.0))
    with harmed(store.root / file.NAME, harm):
        for _ in range(2):
            with closing(Index(store.root)) as index:
                assert index.ask(lambda rows: list(query.recent(rows, Wanted(text="gap")))) == [4, 3, 2, 1, 0]
                index.refresh()
                best = index.ask(lambda rows: query.ranked(rows, Wanted(), Direction.MAXIMIZE, 9))
                assert [record.number for record in best] == [4, 3, 2, 9, 1]
                assert index.ask(query.totals) == query.Totals(5, 0, 0)
    assert [path.name for path in store.root.glob("*.tmp")] == []


@pytest.mark.parametrize("there", [True, False])
def test_in_a_closed_folder_it_is_held_in_memory(there: bool, store: Store) -> None:
    if there:
        numbers(store.root)
    store.publish(attempt(9, 3.0))
    names = sorted(path.name for path in store.root.iterdir())
    with closed(store.root):
        assert numbers(store.root) == [9, 4, 3, 2, 1, 0]
    assert sorted(path.name for path in store.root.iterdir()) == names


def test_unfinished_indexes_are_removed_after_a_while(store: Store) -> None:
    old, new = (store.root / f".{file.NAME}.{name}.tmp" for name in ("1-1", "2-2"))
    for path in (old, new):
        path.write_text("")
    os.utime(old, (0, 0))
    numbers(store.root)
    assert (old.exists(), new.exists()) == (False, True)


def test_two_processes_that_refresh_it_do_not_harm_each_other(store: Store) -> None:
    with closing(Index(store.root)) as first, closing(Index(store.root)) as second:
        first.refresh()
        second.refresh()
        (store.root / file.NAME).unlink()
        store.publish(attempt(5, 2.0))
        first.refresh()
        second.refresh()
        store.publish(attempt(6, 2.0))
        for index in (first, second):
            index.refresh()
            assert index.ask(lambda rows: list(query.recent(rows, Wanted()))) == [6, 5, 4, 3, 2, 1, 0]


FEEDER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from sample import attempt
from strangers import closed
from attempts.index.index import Index
from attempts.store import Store
store, index = Store(Path(sys.argv[1])), Index(Path(sys.argv[1]))
number = 5
while True:
    store.publish(attempt(number, float(number)))
    index.add([attempt(number, float(number))])
    print(number, flush=True)
    number += 1
"""


def test_a_writer_killed_at_any_moment_leaves_nothing_wrong(store: Store) -> None:
    root = Path(__file__).parents[4]
    for moment in range(8):
        numbers(store.root)
        command = [sys.executable, "-c", FEEDER, str(store.root), str(root), str(root / "tests" / "support")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            for _ in range(3 + moment):
                assert child.stdout.readline()
            child.send_signal(signal.SIGKILL)
        assert numbers(store.root) == [record.number for record in reversed(readable(store))]


def test_a_peek_takes_the_file_as_it_is(store: Store) -> None:
    with closing(Index(store.root)) as index:
        assert index.peek(query.last) is None  # there is none, and it is not looked for again
        numbers(store.root)
        assert index.peek(query.last) is None
    store.publish(attempt(5, 6.0))
    with closing(Index(store.root)) as index:
        assert index.peek(query.last) == 4
        assert index.peek(lambda rows: rows.execute("SELECT nothing")) is None
        assert index.ask(query.last) == 5
