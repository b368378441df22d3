"""The rolling check restores damaged public records, and reports them."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from real_runs import tries, wait_until
from records import readable
from sample import attempt

from attempts.index.index import Index
from attempts.index.query import Wanted, ranked
from attempts.record import Attempt, Direction, Kind
from attempts.store import Store
from coral.fleet import actions as do, events as on
from coral.fleet.run_state import Fleet
from coral.records import integrity
from coral.records.integrity import IntegrityCheck, restore
from coral.records.ledger import Ledger
from coral.supervisor.loop import Supervisor
from workspace.layout import Layout
from workspace.pins import Pins


def record(number: int) -> Attempt:
    return attempt(number, 1.0, agent="agent-1", kind=Kind.REAL, submitted_at="", published_at="")


class Records:
    """A folder of published records, with the look that goes round it."""

    def __init__(self, root: Path, count: int) -> None:
        self.store = Store(root / "attempts")
        self.ledger = Ledger(root / "ledger.sqlite", lambda: [record(number) for number in range(count)])
        for number in range(count):
            self.ledger.add(record(number))
            self.store.publish(record(number))
            self.ledger.set_witnesses({number: self.store.witness(number)})
        self.next_number, self.pending = count, set[int]()
        self.written: list[Attempt] = []
        self.index: Callable[[Attempt], None] = self.written.append
        self.pins = Pins(Layout(root))
        self.check = IntegrityCheck(self.store, self.ledger, self.pins.restore, self.pins.restore_files)

    def step(self, *leaders: int) -> list[on.Event]:
        """What is told of one look, and of writing again what it found damaged."""
        told: list[on.Event] = []
        for event in self.check.report(self.check.check_next(leaders), self.next_number, self.pending):
            told += self.restored(event) if isinstance(event, on.RecordsDamaged) else [event]
        return told

    def restored(self, damaged: on.RecordsDamaged) -> list[on.Event]:
        action = do.RestoreRecords(altered=damaged.altered, misindexed=damaged.misindexed)
        return list(restore(self.store, self.ledger, self.index, action))

    def round(self) -> list[on.Event]:
        """More than once around."""
        steps = 2 * (len(self.ledger.page(-1, 10**6)) // integrity.BATCH + 2)
        return [event for _ in range(steps) for event in self.step()]

    def path(self, number: int) -> Path:
        return self.store.root / f"{number:06d}.json"


@pytest.fixture
def records(tmp_path, monkeypatch) -> Iterator[Records]:
    monkeypatch.setattr(integrity, "BATCH", 4)
    records = Records(tmp_path, 10)
    yield records
    records.check.close()
    records.ledger.close()


def forge(path: Path) -> None:
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "score": 99.0}))


def swap(path: Path) -> None:
    shutil.copy(path.with_name("000002.json"), path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


SPOILED: list[Callable[[Path], object]] = [
    forge, swap, pipe, folder, link, lambda path: path.write_bytes(b"\xff{"), Path.unlink,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_damaged_record_is_restored_and_told(records: Records, spoil: Callable[[Path], object]) -> None:
    assert records.round() == []
    spoil(records.path(7))
    found = "was deleted" if spoil is Path.unlink else "was altered"
    assert records.round() == [on.Restored(item="the record of #7", found=found)]
    if spoil is forge:  # what lay there instead is kept
        (kept,) = records.store.root.glob(".000007.json.foreign-*")
        assert json.loads(kept.read_text())["score"] == 99.0
    assert [attempt.number for attempt in records.written] == [7]
    assert records.store.read(7) == record(7)
    assert records.round() == []


@pytest.mark.parametrize(("number", "pending"), [(999_999, set()), (10, {10})])
def test_a_record_of_no_published_attempt_is_set_aside(records: Records, number: int, pending: set[int]) -> None:
    shutil.copy(records.path(7), records.path(number))
    records.next_number, records.pending = 10 + len(pending), pending
    (told,) = records.round()
    assert isinstance(told, on.Broken)
    assert f"#{number}" in told.item
    assert records.store.numbers() == list(range(10))


def test_a_copied_folder_is_no_damage(records: Records, tmp_path) -> None:
    """As after a copy of the run to another disk: every file is another one, and says the same."""
    shutil.copytree(records.store.root, tmp_path / "copy")
    shutil.rmtree(records.store.root)
    (tmp_path / "copy").rename(records.store.root)
    assert records.round() == []
    assert records.ledger.page(6, 1)[0].witness == records.store.witness(7)


def test_a_wiped_folder_is_filled_again_and_told_briefly(tmp_path) -> None:
    records = Records(tmp_path, 30)
    for number in range(30):
        records.path(number).unlink()
    told = records.step()
    assert len(told) == integrity.MAX_NAMED + 1
    assert told[-1] == on.Restored(item="10 other records", found="were altered or deleted")
    assert readable(records.store) == [record(number) for number in range(30)]
    records.check.close()
    records.ledger.close()


def test_an_unwritten_record_is_written_and_not_told(records: Records) -> None:
    records.ledger.add(record(10))
    assert records.round() == []
    assert records.store.read(10) == record(10)


def test_an_unchanged_file_is_not_opened(records: Records, monkeypatch) -> None:
    monkeypatch.setattr(Store, "read", lambda *_: pytest.fail("it was opened"))
    assert records.round() == []


def test_a_step_does_not_look_up_the_names_of_records_that_were_published(records: Records, monkeypatch) -> None:
    asked: list[int] = []
    known = Ledger.known
    monkeypatch.setattr(Ledger, "known", lambda ledger, numbers: known(ledger, asked.extend(numbers) or numbers))
    records.path(11).write_text("{}")
    records.pending.add(3)
    (told,) = records.round()
    assert isinstance(told, on.Broken)
    assert set(asked) == {3, 11}


@pytest.mark.parametrize("count", [5, 40])
def test_a_step_checks_a_fixed_number_of_records(tmp_path, monkeypatch, count: int) -> None:
    monkeypatch.setattr(integrity, "BATCH", 4)
    records = Records(tmp_path, count)
    looked: list[int] = []
    witness = Store.witness
    monkeypatch.setattr(Store, "witness", lambda store, number: looked.append(number) or witness(store, number))
    records.step()
    assert len(looked) == 4
    records.check.close()
    records.ledger.close()


def test_an_altered_ledger_is_rebuilt(records: Records, tmp_path) -> None:
    records.ledger.close()
    base = sqlite3.connect(tmp_path / "ledger.sqlite")
    base.execute("UPDATE records SET record = '{}' WHERE number = 7")
    base.commit()
    base.close()
    records.path(7).unlink()
    records.ledger = Ledger(tmp_path / "ledger.sqlite", lambda: [record(number) for number in range(10)])
    records.check = IntegrityCheck(records.store, records.ledger, records.pins.restore, records.pins.restore_files)
    assert on.Restored(item="the private ledger of records", found="was altered") in records.round()
    assert records.store.read(7) == record(7)
    assert records.round() == []


def test_what_is_spoiled_together_with_the_ledger_is_told(records: Records) -> None:
    """But not a record that was never written."""
    assert records.round() == []
    forge(records.path(7))
    records.path(3).unlink()
    records.ledger.add(record(10))
    records.ledger._path.unlink()
    told = [
        on.Restored(item="the private ledger of records", found="was deleted"),
        on.Restored(item="the record of #3", found="was deleted"),
        on.Restored(item="the record of #7", found="was altered"),
    ]
    assert sorted(records.round(), key=lambda event: event.item) == told
    assert readable(records.store) == [record(number) for number in range(11)]
    assert records.round() == []


def test_records_that_the_journal_lacks_are_no_forgeries(records: Records, tmp_path) -> None:
    records.ledger.close()
    (tmp_path / "ledger.sqlite").unlink()
    records.ledger = Ledger(tmp_path / "ledger.sqlite", lambda: [record(number) for number in range(6, 10)])
    records.ledger.ensure(10, [])
    records.check = IntegrityCheck(records.store, records.ledger, records.pins.restore, records.pins.restore_files)
    (told,) = records.round()
    assert told == on.Restored(
        item="6 published records", found="are gone from journal, ledger and attempts/", source=""
    )
    assert records.store.numbers() == list(range(10))


def test_a_touched_ledger_is_rebuilt_by_the_check(records: Records, tmp_path) -> None:
    made = []
    records.ledger._published = lambda: made.append(1) or [record(number) for number in range(10)]
    seen = records.check.check_next([])
    records.ledger._path.chmod(0o640)
    list(records.check.report(seen, 10, set()))
    records.ledger.add(record(9))
    assert made == []
    assert records.check.check_next([]).witnesses
    assert made == [1]


def test_the_leaders_are_checked_in_every_step(records: Records) -> None:
    forge(records.path(9))
    assert records.step() == []
    assert records.step(9) == [on.Restored(item="the record of #9", found="was altered")]


def fed(records: Records) -> Index:
    """An index that is fed as a supervisor feeds it."""
    index = Index(records.store.root)
    index.refresh()
    records.index = lambda attempt: records.written.append(attempt) or index.add([attempt])
    return index


def numbers(index: Index, wanted: Wanted) -> list[int]:
    index.refresh()
    return [attempt.number for attempt in index.ask(lambda rows: ranked(rows, wanted, Direction.MAXIMIZE, None))]


FORGERIES = {
    "a score": "UPDATE records SET score = 99.0 WHERE number = 7",
    "an agent": "UPDATE records SET agent = 'agent-2' WHERE number = 7",
    "a candidate": "UPDATE records SET tree = 'x' WHERE number = 7",
    "what it says": "UPDATE texts SET text = 'nothing' WHERE number = 7",
    "a text that is no text": "UPDATE texts SET text = x'00ff' WHERE number = 7",
    "its words": "INSERT INTO words(words, rowid, text) VALUES('delete', 7, 'try 7\n\n')",
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_index_is_corrected_and_told(records: Records, monkeypatch, what: str) -> None:
    monkeypatch.setattr("attempts.index.index.SEARCHED", 1.0)
    index = fed(records)
    assert records.round() == []
    with closing(sqlite3.connect(records.store.root / "index.sqlite")) as base, base:
        base.execute(FORGERIES[what])
    assert records.round() == [on.Restored(item="the index of records", found="was altered")]
    assert [attempt.number for attempt in records.written] == [7]
    assert numbers(index, Wanted(text="try 7")) == [7]
    assert records.round() == []
    index.close()


@pytest.mark.parametrize("is_file_altered", [False, True])
def test_an_index_forged_together_with_the_ledger_is_told(records: Records, is_file_altered: bool) -> None:
    index = fed(records)
    assert records.round() == []
    with closing(sqlite3.connect(records.store.root / "index.sqlite")) as base, base:
        base.execute(FORGERIES["a score"])
    if is_file_altered:
        forge(records.path(7))
    records.ledger._path.unlink()
    wrong = "the record of #7" if is_file_altered else "the index of records"
    expected = [(integrity.LEDGER, "was deleted"), (wrong, "was altered")]
    assert sorted((event.item, event.found) for event in records.round()) == sorted(expected)
    assert numbers(index, Wanted()) == list(range(10))
    assert records.round() == []
    index.close()


def test_a_record_hidden_by_the_index_is_added_again(records: Records) -> None:
    index = fed(records)
    with closing(sqlite3.connect(records.store.root / "index.sqlite")) as base, base:
        for name in ("records", "texts"):
            base.execute(f"DELETE FROM {name} WHERE number = 7")
    assert records.round() == []
    assert numbers(index, Wanted()) == list(range(10))
    index.close()


def test_an_altered_record_in_the_index_is_told_once(records: Records) -> None:
    index = fed(records)
    forge(records.path(7))
    index.refresh()
    index.audit()  # somebody looks
    assert records.round() == [on.Restored(item="the record of #7", found="was altered")]
    assert numbers(index, Wanted()) == list(range(10))
    index.close()


def test_an_unusable_index_is_left_to_its_readers(records: Records) -> None:
    (records.store.root / "index.sqlite").write_bytes(b"\xff" * 5000)
    assert records.round() == []
    assert records.written == []


def test_records_are_checked_however_rarely_inboxes_are_read(start) -> None:
    layout = start(["hang"], overrides=("run.poll_seconds=3600",), supervise=False).layout
    manager = Supervisor(layout, (layout.private / "seed").read_text().strip())
    baseline = Store(layout.attempts).read(0)
    manager._ledger.add(baseline)
    manager._ledger.set_witnesses({0: (0, 0, 0)})
    (layout.attempts / "000000.json").unlink()
    clock, looks = 0.0, 0
    while manager._ledger.page(-1, 1)[0].witness == (0, 0, 0):
        now = on.Moment(run_time=clock, wall_time="")
        found = manager._gatherer.gather(Fleet(), now)
        damaged = [event for event in found if isinstance(event, on.RecordsDamaged)]
        actions = [do.RestoreRecords(altered=event.altered, misindexed=event.misindexed) for event in damaged]
        manager._performer.perform(actions, Fleet(), now)
        look = manager._gatherer._damage._running_check
        look.exception(120)
        clock += manager._gatherer.seconds_to_reading(Fleet(), now)
        looks += 1
        assert clock < 3600 / (100_000 / integrity.BATCH) * (looks + 1)
    assert Store(layout.attempts).read(0) == baseline
    manager.close()


def test_a_forgery_in_a_run_is_corrected_and_alerted(start) -> None:
    run = start([*tries(1, 2), "hang"], overrides=("run.poll_seconds=0.2",))
    published = run.wait_for_attempts(2)
    run.stop()
    path = run.layout.attempts / "000001.json"
    forge(path)
    (run.layout.attempts / "000002.json").unlink()
    shutil.copy(path, run.layout.attempts / "000777.json")
    (run.layout.heartbeats / "agent-1.yaml").unlink()
    run.supervise()
    wait_until(lambda: run.attempts() == published, what="the records")
    wait_until(lambda: len(run.events("alert")) >= 3, what="the alerts")
    text = " ".join(event["text"] for event in run.events("alert"))
    assert "#1 was altered" in text
    assert "#2 was deleted" in text
    assert "#777" in text
    assert run.status()["best"]["score"] < 99
    (run.layout.heartbeats / "agent-1.yaml").write_text("- {name: reflect, every: 1000}\n")
    wait_until(lambda: "heartbeats/agent-1.yaml" in str(run.events("alert")), what="the alert")
    assert "1000" not in (run.layout.heartbeats / "agent-1.yaml").read_text()
