"""The ledger knows what was published, whatever happens to its file, and tells the standings in a few records."""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sample
from hypothesis import given, strategies as st

from attempts.record import Attempt, Kind, Verdict
from coral.errors import CoralError
from coral.records.ledger import Ledger
from coral.records.ledger_file import insert
from coral.records.recent import RECENT, RecentResults


def record(number: int, agent: str = "agent-1", score: float | None = 1.0, kind: Kind = Kind.REAL) -> Attempt:
    return sample.attempt(
        number,
        score,
        kind=kind,
        agent="" if kind is Kind.BASELINE else agent,
        tree=f"{number % 7:040x}",
        submitted_at="",
        published_at="",
        verdict=Verdict.FAILED if score is None else Verdict.OWN_BEST if number % 3 else Verdict.WORSE,
        feedback="ünïcode \U0001f600",
        metrics={"a": 1, "b": "c", "d": None},
        of=1 if kind is Kind.CONFIRM else None,
    )


SEED = record(0, score=0.0, kind=Kind.BASELINE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def nothing() -> tuple[Attempt, ...]:
    return ()


def alter(path: Path, statement: str, *values: str) -> None:
    """The file is changed by somebody else."""
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(statement, values)


def ledger_of(path: Path, *attempts: Attempt, published: Callable[[], Iterable[Attempt]] = nothing) -> Ledger:
    ledger = Ledger(path, published)
    for attempt in attempts:
        ledger.add(attempt)
    return ledger


def entered(ledger: Ledger) -> list[Attempt]:
    return [row.attempt for row in ledger.page(-1, 1000)]


def test_the_next_supervisor_has_the_same_records(path: Path) -> None:
    ledger = ledger_of(path, *map(record, (2, 1, 3, 1)))  # adding one again has no effect
    ledger.set_witnesses({2: (7, 8, 9)})
    ledger.close()
    ledger = Ledger(path, nothing)
    assert entered(ledger) == [record(1), record(2), record(3)]
    assert [row.witness for row in ledger.page(1, 1)] == [(7, 8, 9)]
    assert ledger.known([3, 4]) == {3}
    ledger.close()


@pytest.mark.parametrize("damage", ["garbage", "empty", "another", "older", "gone", "folder", "cut"])
def test_a_damaged_ledger_is_rebuilt_from_the_journal(path: Path, damage: str) -> None:
    ledger_of(path, *map(record, range(1, 50))).close()
    if damage == "garbage":
        path.write_bytes(b"not a database" * 1000)
    elif damage in ("gone", "folder"):
        path.unlink()
        if damage == "folder":
            path.mkdir()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        alter(path, "PRAGMA user_version = 77" if damage == "older" else "DELETE FROM records WHERE number = 4")
    published = [SEED, *map(record, range(1, 50))]
    if damage == "folder":
        with pytest.raises(CoralError, match="cannot write"):
            Ledger(path, lambda: published)
        return
    ledger = Ledger(path, lambda: published)
    ledger.ensure(50, [])
    assert entered(ledger) == published
    ledger.close()


def test_a_complete_ledger_is_not_rebuilt(path: Path) -> None:
    ledger = Ledger(path, lambda: pytest.fail("nothing is missing"))
    ledger.ensure(0, [])
    ledger.add(SEED)
    ledger.add(record(1))
    ledger.ensure(2, [])
    # Two more were decided; the supervisor died before it wrote one of them, and after it wrote the other.
    ledger.add(record(2))
    ledger.ensure(4, [2, 3])
    ledger.close()


def test_a_ledger_with_a_wrong_record_of_the_right_count_is_rebuilt(path: Path) -> None:
    ledger = ledger_of(path, SEED, record(9), published=lambda: [SEED, record(1), record(2)])
    ledger.ensure(3, [9])
    assert entered(ledger) == [SEED, record(1), record(2)]
    ledger.close()


@pytest.mark.parametrize("said", ["not json", '{"number": 1}', "[]"])
def test_a_spoiled_record_is_rebuilt_from_the_journal(path: Path, said: str) -> None:
    ledger_of(path, SEED, record(1)).close()
    alter(path, "UPDATE records SET record = ? WHERE number = 1", said)
    ledger = Ledger(path, lambda: [SEED, record(1)])
    ledger.ensure(2, [])
    assert ledger.outline(5) == [SEED, record(1)]
    ledger.close()


def rewrite(path: Path) -> None:
    """A score in it, in place: whole as a file, and a lie."""
    wal = path.with_name(path.name + "-wal")
    for part in (path, wal):
        before, text = part.stat(), part.read_bytes()
        while part.stat().st_ctime_ns == before.st_ctime_ns:  # the kernel's clock for this is a coarse one
            with part.open("r+b") as file:
                file.write(text.replace(b'"title": "try', b'"title": "lie'))
            os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))


def touch(path: Path) -> None:
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        path.chmod(0o600)


AWAY: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "deleted": (Path.unlink, "was deleted"),
    "deleted with what belongs to it": (lambda path: [file.unlink() for file in path.parent.iterdir()], "was deleted"),
    "without its log": (lambda path: path.with_name(path.name + "-wal").unlink(), "was replaced"),
    "replaced": (lambda path: (path.unlink(), path.write_bytes(b"garbage")), "was replaced"),
    "rewritten": (rewrite, "was altered"),
    "touched": (touch, None),
}


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("first", ["a look", "a record", "witnesses"])
def test_damage_to_the_open_file_is_noticed_and_loses_nothing(path: Path, away: str, first: str) -> None:
    spoil, found = AWAY[away]
    known = [record(1), record(2)]
    ledger = ledger_of(path, *known, published=lambda: known)
    ledger.set_witnesses({1: (1, 2, 3)})
    assert ledger.repair() is None
    spoil(path)
    if first == "a record":
        known.append(record(3))
        ledger.add(record(3))
    elif first == "witnesses":
        ledger.set_witnesses({2: (7, 8, 9)})
        assert ledger.page(1, 1)[0].witness == (7, 8, 9)
    assert ledger.repair() == found
    assert ledger.repair() is None
    assert entered(ledger) == known
    ledger.close()
    again = Ledger(path, nothing)
    assert entered(again) == known
    again.close()


@pytest.mark.parametrize(("names", "found"), [(["", "-wal"], "was deleted"), (["-wal"], "was replaced")])
def test_a_deletion_during_a_write_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], found: str
) -> None:
    known = [record(1)]
    ledger = ledger_of(path, *known, published=lambda: known)

    def taken(base: sqlite3.Connection, attempts: Iterable[Attempt]) -> None:
        insert(base, attempts)
        for name in names:
            path.with_name(path.name + name).unlink()

    known.append(record(2))
    with monkeypatch.context() as patch:
        patch.setattr("coral.records.ledger.insert", taken)
        ledger.add(known[1])
    assert ledger.repair() == found
    assert entered(ledger) == known
    ledger.close()


def cut_short() -> Iterator[Attempt]:
    yield SEED
    yield record(1)
    raise CoralError("cannot read it", "look for a backup")


LACKING: dict[str, Callable[[], Iterable[Attempt]]] = {
    "its beginning": lambda: [record(3), record(4)],
    "its end": cut_short,
    "its middle": lambda: [SEED, record(1), record(4)],
    "everything": nothing,
}


@pytest.mark.parametrize("what", LACKING)
@pytest.mark.parametrize("touched", [False, True])
def test_records_that_the_journal_lacks_are_kept(path: Path, what: str, touched: bool) -> None:
    known = [SEED, *map(record, range(1, 5))]
    ledger = ledger_of(path, *known, published=LACKING[what])
    if touched:
        touch(path)
        assert ledger.repair() is None
    else:
        ledger.rebuild()
    assert entered(ledger) == known
    assert ledger.losses() == []
    ledger.close()
    alter(path, "PRAGMA user_version = 77")
    ledger = Ledger(path, LACKING[what], 5)
    ledger.ensure(5, [])
    assert entered(ledger) == known
    ledger.close()


def test_records_in_neither_are_taken_from_the_folder_and_told(path: Path) -> None:
    asked: list[Collection[int]] = []

    def unvouched(known: Collection[int]) -> list[Attempt]:
        asked.append(known)
        return [record(1), record(2), replace(record(9), order=3)]

    ledger = Ledger(path, lambda: [SEED, record(3)], 6, [5], unvouched)
    ledger.ensure(6, [5])
    assert asked == [{0, 3}]
    assert entered(ledger) == [SEED, record(1), record(2), record(3)]
    taken, lost = ledger.losses()
    assert (taken.item, taken.found) == ("2 published records", "were gone from journal and ledger")
    assert "attempts/" in taken.source
    assert (lost.item, lost.source) == ("1 published records", "")
    assert ledger.losses() == []
    ledger.close()


def test_a_failed_rebuild_keeps_the_old_ledger(path: Path) -> None:
    def full() -> Iterator[Attempt]:
        yield SEED
        raise OSError("no space left")

    ledger = ledger_of(path, SEED, record(1), published=full)
    with pytest.raises(OSError, match="no space"):
        ledger.rebuild()
    assert entered(ledger) == [SEED, record(1)]
    ledger.add(record(2))
    with pytest.raises(CoralError, match=r"cannot write .* no space"):
        ledger.ensure(9, [])
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    again = Ledger(path, nothing)
    assert entered(again) == [SEED, record(1), record(2)]
    again.close()


def test_a_record_added_during_a_rebuild_is_kept(path: Path) -> None:
    def published() -> Iterator[Attempt]:
        yield SEED
        ledger.add(record(1))

    ledger = Ledger(path, published)
    ledger.add(SEED)
    assert ledger.rebuild() is False
    assert entered(ledger) == [SEED, record(1)]
    ledger.close()


def test_only_a_repair_reads_the_journal_and_not_at_each_touch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Attempt] = []

    def published() -> list[Attempt]:
        made.append(SEED)
        return [SEED, record(1)]

    monkeypatch.setattr("coral.records.ledger.REST", 1e12)
    ledger = Ledger(path, published)
    ledger.add(SEED)
    touch(path)
    ledger.add(record(1))
    ledger.set_witnesses({1: (1, 2, 3)})
    assert ledger.is_suspect
    assert made == []
    assert ledger.repair() is None
    assert not ledger.is_suspect
    touch(path)
    assert ledger.repair() is None
    assert (made, ledger.is_suspect) == ([SEED], True)
    ledger.close()


def test_a_ledger_locked_by_others_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coral.records.ledger_file.BUSY_SECONDS", 0.05)
    Ledger(path, nothing).close()
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    ledger = Ledger(path, lambda: [SEED])
    assert entered(ledger) == [SEED]
    ledger.close()
    other.close()


def test_a_duplicate_is_of_the_first_scored_attempt_with_its_tree(path: Path) -> None:
    tree = f"{5:040x}"
    first = replace(record(1, score=None), tree=tree)
    second = replace(record(8, score=3.0), tree=tree)
    tune = replace(record(3, score=9.0, kind=Kind.TUNE), tree=tree)
    ledger = ledger_of(path, replace(second, number=15, order=15, score=4.0), first, tune, second)
    first, trial = (ledger.duplicate_of(tree, tune=tune, epoch=1) for tune in (False, True))
    assert (first.number, first.score, trial.number, trial.score) == (8, 3.0, 3, 9.0)
    assert ledger.duplicate_of(f"{6:040x}", tune=False, epoch=1) is None
    ledger.close()


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["agent-1", "agent-2", "agent-3"]),
        st.none() | st.integers(-5, 5).map(float),
        st.sampled_from([Kind.REAL, Kind.TUNE, Kind.CONFIRM]),
    ),
    max_size=60,
)


@given(ROWS)
def test_the_outline_gives_the_recent_results_of_all_records(rows):
    attempts = [SEED, *(record(place, *row) for place, row in enumerate(rows, 1))]
    ledger = ledger_of(Path(":memory:"), *attempts, published=lambda: attempts)
    outline = ledger.outline(RECENT)
    ledger.close()
    whole, short = RecentResults(attempts), RecentResults(outline)
    assert (short.baseline, short.of_agent) == (whole.baseline, whole.of_agent)
    assert len(outline) <= 1 + 3 * RECENT


@given(ROWS)
def test_recent_results_agree_with_a_look_at_everything(rows):
    attempts = [record(place, *row) for place, row in enumerate(rows, 1)]
    results = RecentResults()
    for attempt in attempts:
        results.add(attempt)
        results.add(attempt)
    for agent in {attempt.agent for attempt in attempts}:
        mine = [attempt for attempt in attempts if attempt.agent == agent and attempt.kind is not Kind.CONFIRM]
        assert list(results.of_agent.get(agent, ())) == mine[-RECENT:]
        assert results.since(agent, 0) == mine[-RECENT:]
        assert results.since(agent, 5) == [attempt for attempt in mine[-RECENT:] if attempt.order > 5]
