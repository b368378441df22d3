"""The rolling check of the public records: altered, deleted or forged ones are restored within the hour.

Every five seconds a worker thread checks the same number of records, however many there are: a file whose inode, size
and change time are as the supervisor left them is not opened. What lies in the place of a record is renamed to a hidden
name. The index is compared with these records too, because a forged index could hide them from every reader, and so are
the commits of these attempts in the hub.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from attempts.files import Witness
from attempts.index.index import mismatches
from attempts.record import Attempt, attempt_from_dict, to_dict
from attempts.store import Malformed, Missing, Store, is_record
from coral.fleet import events as on
from coral.fleet.actions import RestoreRecords
from coral.records.ledger import Ledger, LedgerDamage, LedgerRow
from coral.records.ledger_file import UNKNOWN_WITNESS

BATCH = 150  # records per check; with a check every five seconds, 108,000 in an hour
LEDGER = "the private ledger of records"
MAX_NAMED = 20  # restored records, or commits, that are named one by one; further ones are counted

# Restores the commit of an attempt, given its number, author and id. Returns what was wrong, and from what it was
# restored: empty if it could not be.
RestorePin = Callable[[int, str, str], tuple[str, str] | None]
# Restores missing files of attempts, given author and commit by number. Returns the same as RestorePin, by number.
RestoreFiles = Callable[[Mapping[int, tuple[str, str]]], Mapping[int, tuple[str, str]]]


@dataclass(slots=True)
class CheckResult:
    """The findings of one check. `ledger`: what was done to the ledger; `listed`: the numbers of files in the folder;
    `witnesses`: those of intact files; `altered`: records whose file is altered or gone; `misindexed`: records that the
    index lacks or contradicts; `index_altered`: whether somebody altered the index; `spoiled`: the numbers of ledger
    rows that are no records; `pins` and `files`: what was wrong with the attempts' commits and their files in the hub,
    and from what they were restored."""

    ledger: LedgerDamage | None
    listed: list[int]
    witnesses: dict[int, Witness | None] = field(default_factory=dict)
    altered: set[int] = field(default_factory=set)
    misindexed: set[int] = field(default_factory=set)
    index_altered: bool = False
    spoiled: set[int] = field(default_factory=set)
    pins: dict[int, tuple[str, str]] = field(default_factory=dict)
    files: Mapping[int, tuple[str, str]] = field(default_factory=dict)


class IntegrityCheck:
    def __init__(self, store: Store, ledger: Ledger, restore_pin: RestorePin, restore_files: RestoreFiles) -> None:
        self._restore_pin = restore_pin
        self._restore_files = restore_files
        self._store = store
        self._ledger = ledger
        self._after = -1
        self._listing: os._ScandirIterator[str] | None = None

    def close(self) -> None:
        if self._listing is not None:
            self._listing.close()
            self._listing = None

    def check_next(self, leaders: Iterable[int]) -> CheckResult:
        """Compare the next records and the `leaders` with their files and with the index. Slow: for a thread."""
        seen = CheckResult(self._ledger.repair(), self._list())
        # A ledger that may be altered itself says nothing about the files.
        page, rows = list[LedgerRow](), list[LedgerRow]()
        if not self._ledger.is_suspect:
            page = self._next_rows()
            # The leaders are checked each time, because every prompt names them and everybody reads them.
            rows = [*(row for number in leaders for row in self._ledger.page(number - 1, 1)), *page]
        self._compare_index(rows, seen)
        self._compare_pins(rows, seen)
        seen.files = self._restore_files(self._taken_in(page))
        for row in rows:
            if row.witness is not None and self._store.witness(row.number) == row.witness:
                continue
            try:
                wrong = _what_is_wrong(self._store, row.attempt)
            except ValueError:
                seen.spoiled.add(row.number)
                continue
            if wrong:
                seen.altered.add(row.number)
            else:
                seen.witnesses[row.number] = self._store.witness(row.number)
        return seen

    def _next_rows(self) -> list[LedgerRow]:
        """Return the next rows of the ledger; after the last one, from the beginning again."""
        rows = self._ledger.page(self._after, BATCH)
        self._after = rows[-1].number if rows else -1
        return rows

    def _compare_index(self, rows: Sequence[LedgerRow], seen: CheckResult) -> None:
        known = {row.number: row for row in rows}
        try:
            missing, wrong = mismatches(self._store.root, {number: row.record for number, row in known.items()})
        except ValueError:
            return  # a row of the ledger is no record: that is dealt with first
        seen.misindexed = {*missing, *wrong}
        seen.index_altered = any(self._is_intact(known[number]) for number in wrong)

    def _is_intact(self, row: LedgerRow) -> bool:
        """Return whether the public file of a record is unchanged. Readers copy what a changed file says into the
        index; then only the record is reported as altered, and not the index."""
        if row.witness != UNKNOWN_WITNESS:
            return self._store.witness(row.number) == row.witness
        with contextlib.suppress(ValueError):  # the row is no record: that is found later
            return not _what_is_wrong(self._store, row.attempt)
        return False

    def _taken_in(self, rows: Iterable[LedgerRow]) -> dict[int, tuple[str, str]]:
        """Return the author and commit of each of these attempts whose commit is in the hub, by its number."""
        found: dict[int, tuple[str, str]] = {}
        for row in rows:
            with contextlib.suppress(ValueError):  # as above
                if (taken_in := row.taken_in) is not None:
                    found[row.number] = taken_in
        return found

    def _compare_pins(self, rows: Sequence[LedgerRow], seen: CheckResult) -> None:
        for row in rows:
            with contextlib.suppress(ValueError):  # the row is no record: that is found below
                if (taken_in := row.taken_in) and (found := self._restore_pin(row.number, *taken_in)):
                    seen.pins[row.number] = found

    def report(self, seen: CheckResult, next_number: int, pending: Collection[int]) -> Iterator[on.Event]:
        """Turn the findings of one check into events. A record file of an attempt from `next_number` on, or of a
        `pending` one, is set aside if the ledger does not know the attempt: it was never published."""
        self._ledger.set_witnesses(seen.witnesses)
        if seen.altered or seen.misindexed:
            yield on.RecordsDamaged(altered=tuple(sorted(seen.altered)), misindexed=tuple(sorted(seen.misindexed)))
        yield from _as_events((f"the commit of #{number} in the hub", *damage) for number, damage in seen.pins.items())
        yield from _as_events((f"a file of #{number} in the hub", *damage) for number, damage in seen.files.items())
        if seen.index_altered:
            yield on.Restored(item="the index of records", found="was altered")
        if seen.ledger:
            yield on.Restored(item=LEDGER, found=seen.ledger)
        yield from self._ledger.losses()
        if seen.spoiled:
            self._ledger.suspect(LedgerDamage.ALTERED)
        new = {number for number in seen.listed if number >= next_number or number in pending}
        for number in sorted(new - self._ledger.known(new)):
            aside = self._store.set_aside(number)
            yield on.Broken(item=f"a record of #{number}, which was never published", reason=f"kept as {aside.name}")

    def _list(self) -> list[int]:
        """Return the numbers of the next files in the folder, which is read in pieces."""
        if self._listing is None:
            self._listing = os.scandir(self._store.root)
        entries = list(islice(self._listing, BATCH))
        if len(entries) < BATCH:
            self.close()
        return [int(entry.name[:-5]) for entry in entries if is_record(entry.name)]


def restore(
    store: Store, ledger: Ledger, index: Callable[[Attempt], None], damaged: RestoreRecords
) -> Iterator[on.Event]:
    """Write those of the `altered` records again that are still damaged, and add all damaged records to the `index`
    again. Slow: for a thread."""
    for row in _rows(ledger, damaged.misindexed):
        index(row.attempt)
    restored: dict[int, str] = {}
    witnesses: dict[int, Witness | None] = {}
    for row in _rows(ledger, damaged.altered):
        if wrong := _what_is_wrong(store, row.attempt):
            store.publish(row.attempt)
            index(row.attempt)  # whoever read the file meanwhile may have taken in what was altered
            if row.witness is not None:  # else it was never written: then nobody took it away
                restored[row.number] = wrong
        witnesses[row.number] = store.witness(row.number)
    ledger.set_witnesses(witnesses)
    yield from _as_events((f"the record of #{number}", wrong, "the journal") for number, wrong in restored.items())


def _as_events(found: Iterable[tuple[str, str, str]]) -> Iterator[on.Restored]:
    """Yield for each item what had been done to it, and from what it was restored; after MAX_NAMED items, only the
    number of the others."""
    everything = list(found)
    for item, wrong, source in everything[:MAX_NAMED]:
        yield on.Restored(item=item, found=wrong, source=source)
    if more := everything[MAX_NAMED:]:
        yield on.Restored(item=f"{len(more)} other records", found="were altered or deleted", source=more[0][2])


def _rows(ledger: Ledger, numbers: Iterable[int]) -> list[LedgerRow]:
    return [row for number in numbers for row in ledger.page(number - 1, 1) if row.number == number]


def _what_is_wrong(store: Store, attempt: Attempt) -> str:
    """Return what was done to the record's file, in words; "" if the file still says the same as the record."""
    try:
        found = store.read(attempt.number)
    except Missing:
        return "was deleted"
    except Malformed:
        return "was altered"
    return "" if found == attempt_from_dict(to_dict(attempt)) else "was altered"
