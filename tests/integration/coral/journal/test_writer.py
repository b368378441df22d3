"""Changes that others make to the journal while the supervisor runs are noticed, reported once, and lose nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import wait_until
from scribe import LongScribe, Scribe, moment
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
def scribe(tmp_path) -> Iterator[LongScribe]:
    made = LongScribe(tmp_path / "journal")
    made.play()
    made.go_on(3)
    yield made
    made.journal.close()


def reports(scribe: Scribe) -> list[str]:
    return [f"{restored.item} {restored.found} ({restored.source})" for restored in scribe.journal.repair()]


def file_of(scribe: Scribe) -> Path:
    return segments(scribe.journal.path)[-1]


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


def expected(scribe: Scribe) -> RecoveredState:
    """What has to be remembered."""
    before = fold(scribe.journal.path)
    assert before.fleet == scribe.fleet
    return before


@pytest.mark.parametrize("name", WRONG)
def test_damage_is_reported_once_and_repaired(scribe: LongScribe, name: str) -> None:
    spoil, found = WRONG[name]
    before = expected(scribe)
    spoil(file_of(scribe))
    found_now = reports(scribe)
    assert found_now[0] == f"the journal was {found} (memory)"
    lost = ["000001.jsonl of the journal was deleted ()"]
    assert found_now[1:] == (lost if found == "deleted" else [])
    assert reports(scribe) == []
    assert fold(scribe.journal.path) == before
    scribe.go_on(1)
    assert reports(scribe) == []
    again = LongScribe(scribe.journal.path)
    assert again.journal.recovered.fleet == scribe.fleet
    again.journal.close()


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("who", ["a decision", "who was started", "a quiet minute"])
def test_the_next_line_is_found_again(scribe: LongScribe, name: str, who: str) -> None:
    spoil, found = WRONG[name]
    before = expected(scribe)
    spoil(file_of(scribe))
    clock = before.clock + 61
    if who == "a decision":
        scribe.decide(clock, submitted("ann", 99))
        after = replace(before, fleet=scribe.fleet, clock=clock)
    elif who == "who was started":
        scribe.journal.record_started({"ben": (1, SPY)})
        after = replace(before, identities={**before.identities, "ben": (1, SPY)})
    else:
        scribe.journal.record_time(moment(clock))
        after = replace(before, clock=clock)
    assert replace(fold(scribe.journal.path), wall="") == replace(after, wall="")
    assert reports(scribe)[0] == f"the journal was {found} (memory)"
    if name in ("deleted", "added to", "replaced by its copy"):
        assert replay(scribe.journal.path).different == 0


@pytest.mark.parametrize(
    "touch",
    [
        lambda path: path.chmod(0o640),
        lambda path: os.utime(path),
        lambda path: os.link(path, path.with_name("link")),
        lambda path: path.write_bytes(path.read_bytes()),
    ],
)
def test_a_change_without_effect_is_not_reported(scribe: LongScribe, touch: Spoil) -> None:
    before = expected(scribe)
    touch(file_of(scribe))
    assert reports(scribe) == []
    assert len(segments(scribe.journal.path)) == 1
    assert fold(scribe.journal.path) == before


def test_a_forged_newer_file_is_renamed(scribe: LongScribe) -> None:
    forged = scribe.journal.path / "000007.jsonl"
    forged.write_bytes(file_of(scribe).read_bytes())
    assert reports(scribe) == ["a file 000007.jsonl of the journal was put there (memory)"]
    (aside,) = scribe.journal.path.glob("foreign-*")
    assert aside.read_bytes() == file_of(scribe).read_bytes()
    assert [file.name for file in segments(scribe.journal.path)] == ["000001.jsonl"]
    assert reports(scribe) == []


def test_the_current_file_is_never_packed(tmp_path) -> None:
    scribe = LongScribe(tmp_path / "journal", long=1)
    scribe.play()
    (scribe.journal.path / "000099.jsonl").write_bytes(b"")
    scribe.go_on(8)
    assert len(reports(scribe)) == 1
    scribe.journal.close()
    assert fold(scribe.journal.path).fleet == scribe.fleet
    assert segments(scribe.journal.path)[-1].suffix == ".jsonl"


def test_a_deleted_earlier_file_is_reported_once(tmp_path) -> None:
    scribe = LongScribe(tmp_path / "journal", long=1)
    scribe.play()
    scribe.go_on(8)
    files = segments(scribe.journal.path)
    assert len(files) > 3
    assert reports(scribe) == []
    wait_until(lambda: len(list(scribe.journal.path.glob("*.gz"))) > 1, what="the packing")
    assert reports(scribe) == []
    again = reopened(scribe)
    (gone,) = scribe.journal.path.glob("000002.jsonl*")
    gone.unlink()
    assert reports(again) == ["000002.jsonl of the journal was deleted ()"]
    assert reports(again) == []
    again.journal.close()


def reopened(scribe: LongScribe) -> LongScribe:
    scribe.journal.close()
    again = LongScribe(scribe.journal.path)
    again.fleet = scribe.fleet
    return again


def test_a_torn_line_after_a_crash_is_not_reported(scribe: LongScribe) -> None:
    scribe.journal.close()
    add(file_of(scribe))
    os.truncate(file_of(scribe), file_of(scribe).stat().st_size - 3)
    scribe.journal = Journal(scribe.journal.path)
    assert reports(scribe) == []
    assert scribe.journal.recovered.fleet == scribe.fleet


def test_damage_is_reported_even_if_no_file_can_be_begun(scribe: LongScribe, tmp_path) -> None:
    before = expected(scribe)
    shutil.rmtree(scribe.journal.path)
    scribe.journal.path.write_text("in the way")
    assert reports(scribe)[0] == "the journal was deleted (memory)"
    with pytest.raises(OSError, match="exists"):
        scribe.decide(before.clock + 1, on.OutputSeen(agent="ben", launch=1, has_prompt=True))
    scribe.journal.path.unlink()
    scribe.decide(before.clock + 2, on.OutputSeen(agent="ben", launch=1, has_prompt=True))
    assert fold(scribe.journal.path).fleet == scribe.fleet


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
