"""Claims in conflict are listed until an attempt decides them."""

from pathlib import Path

import pytest
from sample import attempt

from coral.views.conflicts import open_conflicts
from workspace.notes import Note

RECORDS = {record.number: record for record in (attempt(3, 1.0), attempt(7, 2.0), attempt(9, None, reason="no"))}


def note(name: str, *attempts: int, contradicts: tuple[str, ...] = (), decided_by: tuple[int, ...] = ()) -> Note:
    path = Path(f"{name}.md")
    return Note(path, name, name, "ann", "", "note", attempts, "", contradicts=contradicts, decided_by=decided_by)


def conflicts(*notes: Note, superseded: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    found = open_conflicts([note for note in notes if note.contradicts], notes, superseded, RECORDS.get)
    return [(conflict.claim.name, conflict.other.name, conflict.why) for conflict in found]


def test_two_notes_that_contradict_each_other_are_one_conflict() -> None:
    one, other = note("pays", 3, contradicts=("fails",)), note("fails", 3, contradicts=("pays", "gone", "fails"))
    assert conflicts(one, other) == [("pays", "fails", "")]
    assert conflicts(one, other, superseded=("fails",)) == []


@pytest.mark.parametrize(
    ("decided_by", "why"),
    [
        ((7,), None),
        ((3,), "#3 is no later than what they rest on"),
        ((9,), "#9 has no score"),
        ((99,), "#99 does not exist"),
        ((99, 7), None),
    ],
)
def test_a_later_attempt_with_a_score_decides(decided_by: tuple[int, ...], why: str | None) -> None:
    found = conflicts(note("pays", 3, contradicts=("fails",)), note("fails", 2, decided_by=decided_by))
    assert found == ([] if why is None else [("pays", "fails", why)])
