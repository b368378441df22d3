"""What a run whose journal is damaged knows of the launches that began, and which journals end too early."""

from pathlib import Path

import pytest
from journal_recorder import JournalRecorder, moment

from coral.journal import fold, published, segments
from coral.journal.damage import roll_back
from coral.journal.lost_lines import LostLines
from coral.records.ledger import Ledger
from coral.runs.roll_back import _launches, _missing_end, _note
from workspace.layout import Layout


def test_the_launches_in_the_logs_are_found_also_from_the_ten_thousandth_on(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    files = (
        layout.prompt("ann", 7),
        layout.output("ann", 9999),
        layout.errors("ann", 10_000),
        layout.job("ann", 20_000),
    )
    layout.logs("ann").mkdir(parents=True)
    for path in files:
        path.touch()
    assert set(_launches(layout, LostLines(), "ann")) == {7, 9999, 10_000}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Of a run with one attempt and one launch of an agent."""
    layout = Layout(tmp_path)
    layout.private.mkdir()
    recorder = JournalRecorder(layout.journal)
    recorder.play()
    recorder.journal.close()
    ledger = Ledger(layout.ledger, tuple)
    for attempt in published(layout.journal):
        ledger.add(attempt)
    ledger.close()
    layout.logs("ann").mkdir(parents=True)
    layout.prompt("ann", 1).touch()
    pins(layout).mkdir(parents=True)
    (pins(layout) / "1").touch()
    return layout


def pins(layout: Layout) -> Path:
    return layout.hub / "refs" / "attempts"


def cut(layout: Layout, mark: bytes, *, zeroed: bool) -> None:
    """Take the journal's end away, from the last line with this mark on."""
    (file,) = segments(layout.journal)
    data = file.read_bytes()
    place = data.rindex(b"\n", 0, data.rindex(mark)) + 1
    file.write_bytes(data[:place] + (b"\0" * (len(data) - place) if zeroed else data[place : place + 30]))


def test_a_journal_that_knows_all_that_was_done_is_whole(layout: Layout) -> None:
    assert _missing_end(layout) is None
    with segments(layout.journal)[-1].open("ab") as file:
        file.write(b'{"sum":"00000000","at":1')  # torn by a crash
    assert _missing_end(layout) is None


@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize("what", ["launch", "record", "commit"])
def test_a_journal_that_ends_before_what_was_done_is_damaged_until_it_is_rolled_back(
    layout: Layout, what: str, zeroed: bool
) -> None:
    launch = fold(layout.journal).fleet.agents["ann"].launch
    if what == "launch":
        layout.prompt("ann", launch + 1).touch()
        why = f"it ends before launch {launch + 1} of ann"
    elif what == "record":
        cut(layout, b'"Publish"', zeroed=zeroed)
        why = "it ends before #1 was published"
    else:
        layout.ledger.unlink()
        cut(layout, b'"Accept"', zeroed=zeroed)
        why = "it ends before #1 was submitted"
    damage = _missing_end(layout)
    assert damage is not None
    assert (damage.why, damage.state.fleet) == (why, fold(layout.journal).fleet)
    note = _note(layout, damage, LostLines(), ())
    roll_back(layout.journal, damage, note, moment(90))
    if what == "launch":
        assert _missing_end(layout) is None  # the note has it, also for a supervisor that dies before it decides
        assert note.launches["ann"] == launch + 1
    assert fold(layout.journal).rolled_back == note
