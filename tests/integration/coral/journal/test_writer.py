"""Changes that others make to the journal while the supervisor runs are noticed, reported once, and lose nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from journal_recorder import JournalRecorder, LongRecorder, moment
from real_runs import wait_until
from stage import submitted

from coral.fleet import events as on
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal import Journal, RecoveredState, fold, segments
from coral.journal.changes import encode_fleet
from coral.journal.lines import FORMAT, seal
from coral.journal.replay import replay
from coral.processes.process_tree import Identity

Spoil = Callable[[Path], object]
RULES = Rules()
SPY = Identity(8, 80, "boot")


@pytest.fixture
def recorder(tmp_path) -> Iterator[LongRecorder]:
    made = LongRecorder(tmp_path / "journal")
    made.play()
    made.go_on(3)
    yield made
    made.journal.close()


def reports(recorder: JournalRecorder) -> list[str]:
    return [f"{restored.item} {restored.found} ({restored.source})" for restored in recorder.journal.repair()]


def file_of(recorder: JournalRecorder) -> Path:
    return segments(recorder.journal.path)[-1]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def alter(path: Path) -> None:
    """In its place, and as long as it was."""
    before = path.stat()
    text = path.read_bytes()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the kernel's clock for this is a coarse one
        with path.open("r+b") as file:
            file.write(text.replace(b'"ann"', b'"eve"', 1))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def add(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"sum":"00000000","at":9e9}\n')


def put_an_older_one_there(path: Path) -> None:
    text = path.read_bytes()
    path.unlink()
    path.write_bytes(text[: text.rindex(b"\n", 0, -1) + 1])


def swap_names(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


WRONG: dict[str, tuple[Spoil, str]] = {
    "deleted": (Path.unlink, "deleted"),
    "moved away": (lambda path: path.rename(path.with_name("elsewhere")), "deleted"),
    "deleted with its folder": (lambda path: shutil.rmtree(path.parent), "deleted"),
    "replaced by an older one": (put_an_older_one_there, "replaced"),
    "replaced by its copy": (swap_names, "replaced"),
    "replaced by a folder": (lambda path: (path.unlink(), path.mkdir()), "replaced"),
    "emptied": (lambda path: os.truncate(path, 0), "cut"),
    "cut": (cut, "cut"),
    "added to": (add, "added to"),
    "altered": (alter, "altered"),
}


def expected(recorder: JournalRecorder) -> RecoveredState:
    """What has to be remembered."""
    before = fold(recorder.journal.path)
    assert before.fleet == recorder.fleet
    return before


@pytest.mark.parametrize("name", WRONG)
def test_damage_is_reported_once_and_repaired(recorder: LongRecorder, name: str) -> None:
    spoil, found = WRONG[name]
    before = expected(recorder)
    spoil(file_of(recorder))
    found_now = reports(recorder)
    assert found_now[0] == f"the journal was {found} (memory)"
    lost = ["000001.jsonl of the journal was deleted ()"]
    assert found_now[1:] == (lost if found == "deleted" else [])
    assert reports(recorder) == []
    assert fold(recorder.journal.path) == before
    recorder.go_on(1)
    assert reports(recorder) == []
    again = LongRecorder(recorder.journal.path)
    assert again.journal.recovered.fleet == recorder.fleet
    again.journal.close()


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("who", ["a decision", "who was started", "a quiet minute"])
def test_the_next_line_is_found_again(recorder: LongRecorder, name: str, who: str) -> None:
    spoil, found = WRONG[name]
    before = expected(recorder)
    spoil(file_of(recorder))
    clock = before.clock + 61
    if who == "a decision":
        recorder.decide(clock, submitted("ann", 99))
        after = replace(before, fleet=recorder.fleet, clock=clock)
    elif who == "who was started":
        recorder.journal.record_started({"ben": (1, SPY)})
        after = replace(before, identities={**before.identities, "ben": (1, SPY)})
    else:
        recorder.journal.record_time(moment(clock))
        after = replace(before, clock=clock)
    assert replace(fold(recorder.journal.path), wall="") == replace(after, wall="")
    assert reports(recorder)[0] == f"the journal was {found} (memory)"
    if name in ("deleted", "added to", "replaced by its copy"):
        assert replay(recorder.journal.path).different == 0


@pytest.mark.parametrize(
    "touch",
    [
        lambda path: path.chmod(0o640),
        lambda path: os.utime(path),
        lambda path: os.link(path, path.with_name("link")),
        lambda path: path.write_bytes(path.read_bytes()),
    ],
)
def test_a_change_without_effect_is_not_reported(recorder: LongRecorder, touch: Spoil) -> None:
    before = expected(recorder)
    touch(file_of(recorder))
    assert reports(recorder) == []
    assert len(segments(recorder.journal.path)) == 1
    assert fold(recorder.journal.path) == before


def test_a_forged_newer_file_is_renamed(recorder: LongRecorder) -> None:
    forged = recorder.journal.path / "000007.jsonl"
    forged.write_bytes(file_of(recorder).read_bytes())
    assert reports(recorder) == ["a file 000007.jsonl of the journal was put there (memory)"]
    (aside,) = recorder.journal.path.glob("foreign-*")
    assert aside.read_bytes() == file_of(recorder).read_bytes()
    assert [file.name for file in segments(recorder.journal.path)] == ["000001.jsonl"]
    assert reports(recorder) == []


def test_the_current_file_is_never_packed(tmp_path) -> None:
    recorder = LongRecorder(tmp_path / "journal", long=1)
    recorder.play()
    (recorder.journal.path / "000099.jsonl").write_bytes(b"")
    recorder.go_on(8)
    assert len(reports(recorder)) == 1
    recorder.journal.close()
    assert fold(recorder.journal.path).fleet == recorder.fleet
    assert segments(recorder.journal.path)[-1].suffix == ".jsonl"


def test_a_deleted_earlier_file_is_reported_once(tmp_path) -> None:
    recorder = LongRecorder(tmp_path / "journal", long=1)
    recorder.play()
    recorder.go_on(8)
    files = segments(recorder.journal.path)
    assert len(files) > 3
    assert reports(recorder) == []
    wait_until(lambda: len(list(recorder.journal.path.glob("*.gz"))) > 1, what="the packing")
    assert reports(recorder) == []
    again = reopened(recorder)
    (gone,) = recorder.journal.path.glob("000002.jsonl*")
    gone.unlink()
    assert reports(again) == ["000002.jsonl of the journal was deleted ()"]
    assert reports(again) == []
    again.journal.close()


def reopened(recorder: LongRecorder) -> LongRecorder:
    recorder.journal.close()
    again = LongRecorder(recorder.journal.path)
    again.fleet = recorder.fleet
    return again


def test_a_torn_line_after_a_crash_is_not_reported(recorder: LongRecorder) -> None:
    recorder.journal.close()
    add(file_of(recorder))
    os.truncate(file_of(recorder), file_of(recorder).stat().st_size - 3)
    recorder.journal = Journal(recorder.journal.path)
    assert reports(recorder) == []
    assert recorder.journal.recovered.fleet == recorder.fleet


def test_damage_is_reported_even_if_no_file_can_be_begun(recorder: LongRecorder, tmp_path) -> None:
    before = expected(recorder)
    shutil.rmtree(recorder.journal.path)
    recorder.journal.path.write_text("in the way")
    assert reports(recorder)[0] == "the journal was deleted (memory)"
    with pytest.raises(OSError, match="exists"):
        recorder.decide(before.clock + 1, on.OutputSeen(agent="ben", launch=1, has_prompt=True))
    recorder.journal.path.unlink()
    recorder.decide(before.clock + 2, on.OutputSeen(agent="ben", launch=1, has_prompt=True))
    assert fold(recorder.journal.path).fleet == recorder.fleet


def test_a_journal_that_is_deleted_before_the_first_supervision_is_begun_anew(tmp_path) -> None:
    journal = Journal(tmp_path / "journal")
    segments(journal.path)[-1].unlink()
    journal.open_supervision(RULES, moment(1.0), (1, 2))
    journal.close()
    assert (fold(journal.path).rules, fold(journal.path).folder) == (RULES, (1, 2))


def test_a_file_that_was_begun_without_rules_is_read(tmp_path) -> None:
    head = {"format": FORMAT, "rules": None, "folder": [], "at": 0.0, "wall": "", "started": {}}
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "000002.jsonl").write_bytes(seal({**head, "state": encode_fleet(Fleet())}, 0)[0])
    assert fold(tmp_path / "journal") == RecoveredState()
