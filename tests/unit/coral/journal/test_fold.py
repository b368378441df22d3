"""A journal folds to what was recorded, also with a torn last line; damage is reported with its line."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from journal_recorder import FOLDER, RULES, JournalRecorder
from stage import SEED, submitted

from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide
from coral.fleet.events import Moment
from coral.fleet.run_state import FLEET, Fleet
from coral.journal import Journal, decisions, difference, fold, published, read_lines, segments
from coral.journal.lines import Lines, seal
from coral.journal.replay import replay
from coral.journal.writer import QUIET_SECONDS
from coral.processes.process_tree import Identity


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[JournalRecorder]:
    made = JournalRecorder(tmp_path / "journal")
    yield made
    made.journal.close()


def test_folding_recovers_fleet_clock_rules_and_identities(recorder: JournalRecorder) -> None:
    recorder.play()
    recovered = fold(recorder.journal.path)
    assert recovered.fleet == recorder.fleet
    # A decision goes through its records in their order.
    assert list(recovered.fleet.agents) == list(recorder.fleet.agents)
    assert list(recovered.fleet.heartbeats) == [FLEET, "ann", "ben"]
    assert recovered.fleet.pending == {}
    assert (recovered.clock, recovered.rules, recovered.folder) == (6.0, RULES, FOLDER)
    assert recovered.identities == {"ann": (1, Identity(7, 70, "boot"))}
    recorder.play()
    recorder.decide(3, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    assert fold(recorder.journal.path).clock == 6.0


def test_an_empty_journal_folds_to_an_empty_fleet(tmp_path: Path) -> None:
    Journal(tmp_path / "journal").close()
    recovered = fold(tmp_path / "journal")
    assert (recovered.fleet, recovered.clock, recovered.rules, recovered.identities) == (Fleet(), 0.0, None, {})
    (file,) = segments(tmp_path / "journal")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_deciding_again_gives_the_recorded_actions(recorder: JournalRecorder) -> None:
    recorder.play()
    fleet, again = Fleet(), []
    for rules, taken in decisions(recorder.journal.path):
        fleet, actions = decide(fleet, taken.events, taken.now, rules)
        assert actions == taken.actions
        again.append(replace(taken, changes={}))
    assert fleet == recorder.fleet
    assert again == recorder.taken


def test_each_decision_comes_with_the_rules_in_force(recorder: JournalRecorder) -> None:
    recorder.play()
    recorder.rules = replace(RULES, slots=7)
    recorder.journal.open_supervision(recorder.rules, Moment(run_time=6.5, wall_time=""), (1, 2))
    recorder.decide(7, on.Resumed())
    assert [rules.slots for rules, _ in decisions(recorder.journal.path)] == [4] * 7 + [7]
    recovered = fold(recorder.journal.path)
    assert (recovered.rules, recovered.folder, recovered.clock) == (recorder.rules, (1, 2), 7.0)


def test_published_attempts_are_read_once_and_in_order(recorder: JournalRecorder) -> None:
    recorder.play()
    recorder.decide(7, submitted("ben", 9))
    recorder.decide(8, on.TakenIn(number=2, commit=SEED, tree=SEED, parent=""))
    recorder.decide(9, on.Graded(number=2, launch=1, outcome=on.Outcome.FAILED, reason='"is":"Publish"'))
    # A supervisor that takes over publishes again what the one before may not have finished.
    recorder.decide(10, on.Resumed())
    recorder.decide(11, on.Resumed())
    acted = [action for _, taken in decisions(recorder.journal.path) for action in taken.actions]
    attempts = [action.attempt for action in acted if isinstance(action, do.Publish)]
    assert [changes.number for changes in attempts] == [0, 1, 2, 2, 2]
    assert list(published(recorder.journal.path)) == attempts[:3]


def test_only_changed_fields_are_written(recorder: JournalRecorder) -> None:
    recorder.play()
    sets = [line["set"] for line in read_lines(recorder.journal.path) if "set" in line]
    assert [sorted(changes) for changes in sets] == [
        ["agents", "heartbeats", "measured", "run"],
        ["agents"],
        ["agents", "pending", "run"],
        ["agents", "pending"],
        ["agents", "measured", "pending", "run"],
        ["agents", "pending"],
        ["agents", "heartbeats", "run"],
    ]
    assert [sorted(changes.get("agents", {})) for changes in sets][2:] == [["ann"]] * 5
    # A sign of life is a time and a deadline.
    assert sorted(sets[1]["agents"]["ann"]) == ["deadline", "has_output", "last_output_at", "session"]
    # An attempt that is published is no longer on its way.
    assert sets[5]["pending"] == {"1": None}
    # What is at its default again is said as well.
    assert sets[5]["agents"]["ann"]["has_output"] is False
    recorder.play()
    again = replace(recorder.fleet.agents["ann"])
    after = replace(recorder.fleet, run=replace(recorder.fleet.run), agents={**recorder.fleet.agents, "ann": again})
    assert difference(recorder.fleet, after) == {}


def test_a_quiet_day_is_recorded_minute_by_minute(recorder: JournalRecorder) -> None:
    recorder.play()
    before, length = fold(recorder.journal.path), segments(recorder.journal.path)[0].stat().st_size
    day = range(6, 6 + 86_400)
    for clock in day[::5]:
        recorder.journal.record_time(Moment(run_time=float(clock), wall_time=f"2030-01-01T00:00:00.{clock:06d}Z"))
    recovered = fold(recorder.journal.path)
    assert replace(recovered, clock=before.clock, wall=before.wall) == before
    lines = list(read_lines(recorder.journal.path))
    assert recovered.clock > day[-1] - QUIET_SECONDS
    assert max(after["at"] - line["at"] for line, after in pairwise(lines[-1440:])) == QUIET_SECONDS
    assert len(lines) == len(recorder.taken) + 2 + 1439
    assert segments(recorder.journal.path)[0].stat().st_size - length < 1440 * 90
    assert replay(recorder.journal.path).agrees
    # And what happens in between is as good as a mark.
    recorder.decide(86_407, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    recorder.journal.record_time(Moment(run_time=86_407 + QUIET_SECONDS - 1, wall_time=""))
    assert list(read_lines(recorder.journal.path))[-1]["at"] == 86_407


# --- torn and damaged ---------------------------------------------------------------------------------------------


def test_a_line_torn_at_any_byte_is_ignored_and_cut(recorder: JournalRecorder, tmp_path: Path) -> None:
    recorder.play()
    path = recorder.journal.path
    (file,) = segments(path)
    whole = file.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    file.write_bytes(whole[:last])
    before = fold(path)
    for end in (*range(last, len(whole), 37), len(whole) - 1):
        file.write_bytes(whole[:end])
        assert fold(path) == before
        Journal(path).close()
        assert file.read_bytes() == whole[:last]
    file.write_bytes(whole)
    Journal(path).close()
    assert file.read_bytes() == whole
    file.write_bytes(whole + b'{"at":9,"events":[')
    recorder.journal.close()
    recorder.journal = Journal(path)
    recorder.decide(10, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    assert fold(path).fleet == recorder.fleet
    (tmp_path / "torn").mkdir()
    for size in (1, 65536, 200_000):
        (tmp_path / "torn" / "000001.jsonl").write_bytes(b"x" * size)
        assert list(read_lines(tmp_path / "torn")) == []
        journal = Journal(tmp_path / "torn")
        assert (journal.recovered.fleet, segments(journal.path)[0].stat().st_size) == (Fleet(), 0)
        journal.close()


GOES_ON = "`coral resume` goes on from the last good state before it, and keeps the damaged file"


@pytest.mark.parametrize(
    ("damage", "line", "why"),
    [
        (lambda lines: [*lines[:2], lines[2][:-5], *lines[3:]], 3, "it is not as it was written"),
        (lambda lines: [*lines[:2], lines[2].replace(b"ann", b"ben"), *lines[3:]], 3, "it is not as it was written"),
        (lambda lines: [*lines[:2], *lines[3:]], 3, "it is not as it was written"),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4, "it is not as it was written"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2, "it is not as it was written"),
        (lambda lines: [*lines[:4], b"{}", *lines[4:]], 5, "its checksum is missing"),
        (lambda lines: [b'{"at":1}', *lines], 1, "its checksum is missing"),
        (lambda lines: [b"[1]", *lines], 1, "it is none of ours"),
        (lambda lines: [b'{"at":NaN}', *lines], 1, "NaN is not JSON"),
        (lambda lines: [b'{"at":1e999}', *lines], 1, "it is none of ours"),
        (lambda lines: [b"[" * 100_000, *lines], 1, "maximum recursion depth"),
    ],
    ids=["cut", "changed", "lost", "doubled", "swapped", "inserted", "first", "list", "NaN", "infinite", "nested"],
)
def test_damage_is_reported_with_its_line(recorder: JournalRecorder, damage, line: int, why: str) -> None:
    recorder.play()
    (file,) = segments(recorder.journal.path)
    file.write_bytes(b"\n".join(damage(file.read_bytes().split(b"\n"))))
    for read in (fold, lambda path: list(read_lines(path)), lambda path: list(published(path)), Journal):
        with pytest.raises(CoralError, match=f"000001.jsonl: line {line} is damaged: .*{why}") as raised:
            read(recorder.journal.path)
        assert raised.value.hint == GOES_ON


def test_a_journal_cut_before_a_damaged_line_goes_on(recorder: JournalRecorder) -> None:
    recorder.play()
    recorder.journal.close()
    (file,) = segments(recorder.journal.path)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:4]))
    recorder.journal = Journal(recorder.journal.path)
    recorder.fleet = recorder.journal.recovered.fleet
    assert list(recorder.fleet.agents["ann"].recent_submissions) == []
    recorder.decide(10, submitted("ann", 9))
    assert fold(recorder.journal.path).fleet == recorder.fleet


@pytest.mark.parametrize("format", [1, 5, 7, "x", None, [[]]])
def test_another_format_is_refused_with_a_hint(recorder: JournalRecorder, format: object) -> None:
    recorder.play()
    (file,) = segments(recorder.journal.path)
    head = {"format": format, "version": "0.0.9", "rules": {}}
    lines = Lines(file, may_be_torn=False)
    assert len(list(lines)) == 9
    unsealed = json.dumps(head).encode() + b"\n"
    gone_on = file.read_bytes() + seal(head, lines.sum)[0]
    for content in (seal(head, 0)[0], unsealed, gone_on):
        file.write_bytes(content)
        for read in (fold, Journal, lambda path: list(published(path)), replay):
            with pytest.raises(CoralError, match=r"its format is .*; this version reads 6 alone") as raised:
                read(recorder.journal.path)
            assert raised.value.hint == (
                "use the version of coral-fleet that wrote it (0.0.9), or start the task anew with `coral start`"
            )
        assert file.read_bytes() == content


def test_an_unknown_record_is_reported(recorder: JournalRecorder) -> None:
    recorder.play()
    strange = replace(recorder.fleet, agents={**recorder.fleet.agents, "bob": Moment(run_time=1.0, wall_time="")})  # type: ignore[dict-item]
    recorder.journal.record(Moment(run_time=7.0, wall_time=""), (), (), recorder.fleet, strange)
    with pytest.raises(CoralError, match="up to line 10: expected a Agent") as raised:
        fold(recorder.journal.path)
    assert "another version" in raised.value.hint


def test_an_unreadable_journal_is_reported(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "000001.jsonl").mkdir()
    with pytest.raises(CoralError, match=r"000001.jsonl: it is no regular file"):
        fold(tmp_path / "journal")
    (tmp_path / "other").write_text("")
    with pytest.raises(CoralError, match="other: Not a directory"):
        fold(tmp_path / "other")


# --- a disk that is full ------------------------------------------------------------------------------------------


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("free", [0, 1, 40])
def test_a_line_that_does_not_fit_leaves_no_trace(recorder: JournalRecorder, free: int) -> None:
    recorder.play()
    (file,) = segments(recorder.journal.path)
    before, fleet = file.read_bytes(), recorder.fleet
    event = on.Broken(item="x" * 200, reason="y")
    with files_of_at_most(len(before) + free), pytest.raises(OSError):
        recorder.decide(8, event)
    assert file.read_bytes() == before
    assert recorder.fleet is fleet
    # With room again, it is decided as if for the first time.
    recorder.decide(9, event)
    assert fold(recorder.journal.path).fleet == recorder.fleet
