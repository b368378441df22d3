"""A journal in many files holds what it would hold in one, also after a crash between two files."""

import gzip
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from journal_recorder import FOLDER, RULES, JournalRecorder, LongRecorder
from real_runs import wait_until
from shortages import no_more_threads
from stage import SEED, submitted

from coral.codec import TAG
from coral.errors import CoralError
from coral.fleet import events as on
from coral.fleet.events import Moment
from coral.journal import Journal, decisions, fold, published, read_lines, salvaged, segments
from coral.journal.lines import Lines, seal
from coral.journal.replay import replay
from coral.journal.segments import Packing
from coral.processes.process_tree import Identity

ALWAYS = 1  # bytes: a next file after every line, as soon as there are as many lines as head


@pytest.fixture
def recorder(tmp_path) -> Iterator[LongRecorder]:
    made = LongRecorder(tmp_path / "journal", long=ALWAYS)
    made.play()
    yield made
    made.journal.close()


def reopened(recorder: JournalRecorder, **how: int) -> Journal:
    recorder.journal.close()
    recorder.journal = Journal(recorder.journal.path, **how)
    return recorder.journal


def text(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


# --- the same as in one file --------------------------------------------------------------------------------------


def test_many_files_hold_what_one_would(recorder: LongRecorder, tmp_path) -> None:
    recorder.go_on(8)
    single = LongRecorder(tmp_path / "single")
    single.play()
    single.go_on(8)
    single.journal.close()
    assert len(segments(single.journal.path)) == 1
    assert list(decisions(recorder.journal.path)) == list(decisions(single.journal.path))
    assert [attempt.number for attempt in published(recorder.journal.path)] == list(range(10))
    assert list(published(recorder.journal.path)) == list(published(single.journal.path))


def test_the_readable_part_of_a_journal_is_salvaged(recorder: LongRecorder) -> None:
    recorder.go_on(8)
    reopened(recorder)  # so that nothing is packed any more
    whole = list(published(recorder.journal.path))
    assert list(salvaged(recorder.journal.path)) == whole
    first, *_, damaged, last = [file for file in segments(recorder.journal.path) if orders_in(file)]
    lost = [*orders_in(first), *orders_in(damaged)]
    first.unlink()
    damaged.write_bytes(b"damaged")
    assert list(salvaged(recorder.journal.path)) == [attempt for attempt in whole if attempt.order not in lost]
    assert len(orders_in(last)) < len(whole) - len(lost)
    with pytest.raises(CoralError, match="cannot read"):
        list(published(recorder.journal.path))


def orders_in(file: Path) -> list[int]:
    return [
        action["attempt"]["order"]
        for line in Lines(file, may_be_torn=True)
        for action in line.get("actions", ())
        if action[TAG] == "Publish"
    ]


def test_a_head_keeps_the_processes_that_may_still_run(recorder: LongRecorder) -> None:
    recorder.decide(7, submitted("ann", 2))
    recorder.decide(8, on.TakenIn(number=2, commit=SEED, tree=SEED, parent=""))
    held = {"ann": (2, Identity(8, 80, "boot")), "#2": (1, Identity(9, 90, "boot"))}
    recorder.journal.record_started({**held, "#1": (1, Identity(6, 60, "boot"))})
    before = segments(recorder.journal.path)[-1]
    for clock in range(9, 40):
        recorder.decide(clock, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
        # Number 1 is published, and its grader is gone.
        if segments(recorder.journal.path)[-1] != before:
            break
    assert segments(recorder.journal.path)[-1] != before
    assert fold(recorder.journal.path).identities == held
    # And the next file has them from the recovered of another supervisor.
    reopened(recorder, long=ALWAYS)
    recorder.go_on(6)
    assert fold(recorder.journal.path).identities["ann"] == held["ann"]


def test_the_head_in_a_copied_run_names_no_process(recorder: LongRecorder) -> None:
    assert fold(recorder.journal.path).identities
    recorder.journal.open_supervision(RULES, Moment(run_time=7.0, wall_time="later"), (1, 2))
    assert fold(recorder.journal.path).identities == {}
    recorder.decide(8, on.Resumed())
    recorder.go_on(6)
    recovered = fold(recorder.journal.path)
    assert (recovered.identities, recovered.folder) == ({}, (1, 2))


def test_the_rules_of_a_head_are_those_in_force(recorder: LongRecorder) -> None:
    rules = replace(RULES, slots=7)
    recorder.journal.open_supervision(rules, Moment(run_time=7.0, wall_time="later"), FOLDER)
    recorder.rules = rules
    recorder.decide(8, on.Resumed())
    recorder.go_on(6)
    assert fold(recorder.journal.path).rules == rules
    assert {decision.slots for decision, _ in decisions(recorder.journal.path)} == {4, 7}
    assert replay(recorder.journal.path).agrees


# --- when -----------------------------------------------------------------------------------------------------------


def test_a_next_file_is_begun_in_a_turn_without_actions(tmp_path) -> None:
    recorder = LongRecorder(tmp_path / "journal", long=6000)
    recorder.play()
    recorder.go_on(20)
    recorder.journal.close()
    files = segments(recorder.journal.path)
    assert len(files) > 3
    for file in files[1:]:
        # Its first decision, before which it was begun, has no action.
        assert [line["actions"] for line in Lines(file, may_be_torn=True) if "actions" in line][:1] == [[]]
    for file in files[:-1]:
        assert 6000 < len(text(file)) < 6000 + 12_000  # and a head


def test_a_next_file_is_begun_even_if_every_turn_acts(tmp_path) -> None:
    recorder = LongRecorder(tmp_path / "journal", long=3000)
    recorder.play()
    for number in range(2, 30):
        recorder.decide(number + 5, submitted("ann", number))
    recorder.journal.close()
    assert len(segments(recorder.journal.path)) > 1
    assert all(taken.actions for _, taken in decisions(recorder.journal.path) if taken.now.run_time > 6)
    assert fold(recorder.journal.path).fleet == recorder.fleet


def test_a_file_grows_longer_than_its_head(recorder: LongRecorder) -> None:
    recorder.go_on(8)
    reopened(recorder)
    for file in segments(recorder.journal.path)[1:-1]:
        whole = text(file)
        assert len(whole) > 2 * (whole.index(b"\n") + 1)


def test_a_line_with_actions_is_synced_with_the_name_of_its_file(recorder: LongRecorder, monkeypatch) -> None:
    synced: list[Path] = []

    def fsync(descriptor: int, really=os.fsync) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        really(descriptor)

    recorder.decide(7, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    monkeypatch.setattr(os, "fsync", fsync)
    begun = 0
    for clock in range(8, 40):
        file = segments(recorder.journal.path)[-1]
        synced.clear()
        recorder.decide(clock, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
        if (now := segments(recorder.journal.path)[-1]) != file:
            # The one before first: a head must not be there without what led to it. Then the head, before its name.
            assert [path for path in synced if path.suffix != ".gz"] == [file, now.with_name(f".{now.name}")]
            recorder.decide(clock + 0.5, submitted("ben", clock))
            assert [path for path in synced if path.suffix != ".gz"][2:] == [now, now.parent]
            begun += 1
        else:
            assert [path for path in synced if path.suffix != ".gz"] == []
    assert begun > 1


# --- dying on the way -----------------------------------------------------------------------------------------------


def test_a_file_with_a_torn_head_is_ignored(recorder: LongRecorder) -> None:
    while len(segments(recorder.journal.path)) < 3:
        recorder.go_on(1)
    recorder.journal.close()
    path, newest = recorder.journal.path, segments(recorder.journal.path)[-1]
    head = newest.read_bytes().splitlines(keepends=True)[0]
    before = None
    for end in (*range(0, len(head), 97), len(head) - 1):
        newest.write_bytes(head[:end])
        before = before or fold(path)
        assert fold(path) == before
    newest.write_bytes(head)
    assert fold(path) == before
    newest.write_bytes(head[:50])
    # Whatever was packed meanwhile: the head is written again, and the run goes on.
    recorder.journal = Journal(path, ALWAYS)
    assert recorder.journal.recovered == before
    recorder.fleet = recorder.journal.recovered.fleet
    recorder.go_on(3)
    assert fold(path).fleet == recorder.fleet
    assert replay(path).agrees


def test_unfinished_files_of_a_crash_are_removed(recorder: LongRecorder) -> None:
    recorder.go_on(3)
    path = recorder.journal.path
    before = fold(path)
    for name in (".000009.jsonl", ".000001.jsonl.gz"):
        (path / name).write_bytes(b"half")
    assert fold(path) == before
    assert reopened(recorder).recovered == before
    assert [path.name for path in path.iterdir() if path.name.startswith(".")] == []


def test_a_missing_head_is_reported(recorder: LongRecorder) -> None:
    recorder.go_on(3)
    recorder.journal.close()
    newest = segments(recorder.journal.path)[-1]
    lines = newest.read_bytes().splitlines(keepends=True)
    newest.write_bytes(b"".join(lines[1:]) or seal({"at": 1.0}, 0)[0])
    with pytest.raises(CoralError, match="line 1 is damaged"):
        fold(recorder.journal.path)
    newest.write_bytes(seal({"at": 1.0}, 0)[0])
    with pytest.raises(CoralError, match="line 1 is damaged: it should begin with everything that was known") as raised:
        Journal(recorder.journal.path)
    assert "`coral resume` goes on" in raised.value.hint
    # Where somebody removes it, it goes on from the one before, also where that is packed by now.
    newest.unlink()
    recorder.journal = Journal(recorder.journal.path)
    recorder.fleet = recorder.journal.recovered.fleet
    recorder.go_on(1)
    assert fold(recorder.journal.path).fleet == recorder.fleet


def test_damage_before_the_newest_file_stops_no_run(recorder: LongRecorder) -> None:
    recorder.go_on(8)
    recorder.journal.close()
    path, files = recorder.journal.path, segments(recorder.journal.path)
    second = text(files[1])
    files[1].unlink()
    with pytest.raises(CoralError, match=r"what came after 000001.jsonl.* is missing"):
        list(published(path))
    found = replay(path)
    assert (found.heads, found.different) == (["what came after 000001.jsonl is missing"], 0)
    cut = path / "000002.jsonl"
    cut.write_bytes(second[:-20])
    with pytest.raises(CoralError, match=r"000002.jsonl: line \d+ is damaged: it was cut"):
        list(read_lines(path))
    lines = second.splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:-2]))  # the last line says who was started
    assert replay(path).heads == [f"{files[2].name} does not begin where the file before it ended"]
    recorder.journal = Journal(path)
    assert recorder.journal.recovered.fleet == recorder.fleet


# --- a disk that is full --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["full", "no file", "no name"])
def test_a_failure_to_begin_a_file_stops_nothing(tmp_path, trouble: str) -> None:
    recorder = LongRecorder(tmp_path / "journal", long=10_000)
    path = recorder.journal.path
    unfinished = path / ".000002.jsonl"
    in_the_way = path / "000002.jsonl" if trouble == "no name" else unfinished
    if trouble != "full":
        in_the_way.mkdir()
    recorder.play()
    failed = 0
    for clock in range(7, 80):
        if trouble == "full" and not unfinished.is_symlink():
            unfinished.symlink_to("/dev/full")  # whatever could not be written whole is removed
            failed += 1
        recorder.decide(clock, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    assert (path / "000001.jsonl").stat().st_size > 15_000
    assert failed > 2 or trouble != "full"
    if in_the_way.is_dir():
        in_the_way.rmdir()
    unfinished.unlink(missing_ok=True)
    # With room again, it is begun soon.
    recorder.go_on(1)
    assert [file.name[:6] for file in segments(path)] == ["000001", "000002"]
    assert fold(path).fleet == recorder.fleet
    recorder.journal.close()
    assert replay(path).same == len(recorder.taken)
    assert [path.name for path in path.iterdir() if path.name.startswith(".")] == []


# --- packed ---------------------------------------------------------------------------------------------------------


def test_finished_files_are_packed(recorder: LongRecorder) -> None:
    recorder.go_on(8)
    wait_until(lambda: segments(recorder.journal.path)[0].suffix == ".gz", what="a packed file")
    recorder.go_on(3)
    assert replay(recorder.journal.path).same == len(recorder.taken)
    first = segments(recorder.journal.path)[0]
    # A crash between the two names: both are whole.
    (recorder.journal.path / "000001.jsonl").write_bytes(text(first))
    assert segments(recorder.journal.path)[0].name == "000001.jsonl"
    assert replay(recorder.journal.path).same == len(recorder.taken)


def test_a_damaged_packed_file_stops_no_run(recorder: LongRecorder) -> None:
    recorder.go_on(8)
    wait_until(lambda: segments(recorder.journal.path)[0].suffix == ".gz", what="a packed file")
    first = segments(recorder.journal.path)[0]
    whole = first.read_bytes()
    for damaged in (whole[:-30], whole[:40] + b"x" + whole[41:], b"", b"\x1f\x8b\x08", b"no"):
        first.write_bytes(damaged)
        if damaged:
            with pytest.raises(CoralError, match=r"cannot read .*000001.jsonl.gz: "):
                list(published(recorder.journal.path))
        assert fold(recorder.journal.path).fleet == recorder.fleet


def test_failed_packing_leaves_the_file(tmp_path) -> None:
    file = tmp_path / "000001.jsonl"
    file.write_bytes(b"x" * 1000)
    (tmp_path / ".000001.jsonl.gz").symlink_to("/dev/full")
    packing = Packing()
    packing.start([file, tmp_path / "000002.jsonl"])
    packing.close()
    assert [path.name for path in tmp_path.iterdir()] == ["000001.jsonl"]
    # Closed, it begins nothing more.
    packing.start([file])
    packing.close()
    assert [path.name for path in tmp_path.iterdir()] == ["000001.jsonl"]
    again = Packing()
    again.start([file])
    wait_until(lambda: not file.exists(), what="a packed file")
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["000001.jsonl.gz"]
    assert text(tmp_path / "000001.jsonl.gz") == b"x" * 1000


def test_packing_waits_where_no_thread_can_be_started(tmp_path) -> None:
    """Until the next file is begun; the decision that began this one is written."""
    file = tmp_path / "000001.jsonl"
    file.write_text("{}\n")
    packing = Packing()
    with no_more_threads():
        packing.start([file])
    packing.close()
    assert file.exists()
    packing = Packing()
    packing.start([file])
    wait_until(lambda: not file.exists(), what="a packed file")
    packing.close()


def test_a_file_packed_while_opened_is_read(recorder: LongRecorder, monkeypatch) -> None:
    recorder.go_on(4)
    reopened(recorder)  # so that nothing is packed any more
    for packed in recorder.journal.path.glob("*.gz"):
        packed.with_suffix("").write_bytes(text(packed))
        packed.unlink()
    listed = segments(recorder.journal.path)
    really_open = Path.open

    def open_after_packing(path: Path, *how: str) -> object:
        if path in listed[:-1] and path.suffix != ".gz":
            with gzip.open(f"{path}.gz", "wb") as packed, really_open(path, "rb") as file:
                packed.write(file.read())
            path.unlink()
        return really_open(path, *how)

    monkeypatch.setattr(Path, "open", open_after_packing)
    assert replay(recorder.journal.path).same == len(recorder.taken)
    assert {file.suffix for file in segments(recorder.journal.path)[:-1]} == {".gz"}


def test_a_file_packed_while_listed_is_listed(recorder: LongRecorder, monkeypatch) -> None:
    recorder.go_on(4)
    reopened(recorder)  # so that nothing is packed any more
    listed = segments(recorder.journal.path)
    really_iterdir, hidden = Path.iterdir, [listed[1]]

    def iterdir(folder: Path) -> Iterator[Path]:
        missed = hidden.pop() if hidden else None
        return (path for path in really_iterdir(folder) if path != missed)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert segments(recorder.journal.path) == listed
