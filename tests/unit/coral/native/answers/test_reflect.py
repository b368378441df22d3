"""The answer to `reflect`: a note that ties the change to the score."""

import pytest
from native_situations import notes, said, situation, trial

from coral.native.answers.reflect import reflect
from coral.native.calls import Remember


def test_a_note_ties_the_change_to_the_score():
    calls = reflect(situation(trial(9, "rows", 1.25, 1.3, expected=1.35, verdict="new best")))
    (note,) = notes(calls)
    assert note.attempts == (8, 9)
    assert note.kind == "note"
    assert "(+0.05)" in note.title
    for words in (
        "#8",
        "#9",
        "1.25 -> 1.3",
        "a.x 1 -> 2",
        "The check had said 1.35:",
        "#8 to #9, +0.2",
    ):
        assert words in note.title + note.body, words
    assert any(isinstance(call, Remember) and call.block == "learned" for call in calls)
    assert said(calls)


@pytest.mark.parametrize(
    ("graded", "words"),
    [
        (trial(9, "shake", 1.25, 1.1, expected=1.3), "(-0.15)"),
        (trial(9, "shake", 1.25, None, reason="two overlap", expected=1.5), "two overlap"),
        (trial(9, "shake", 1.25, 1.3, expected=1.6), "not the whole truth"),
        (
            trial(9, "shake", 1.25, 1.3, expected=None, verdict="new best"),
            "one grade is all the evidence",
        ),
        (trial(9, "shake", None, 1.3, start=None, expected=None, verdict="new best"), "#?"),
    ],
)
def test_each_note_says_what_its_own_facts_say(graded, words):
    (note,) = notes(reflect(situation(graded)))
    assert words in note.title + note.body
    assert all(number is not None for number in note.attempts)


def test_no_attempt_gets_two_notes():
    assert notes(reflect(situation(trial(9, "rows", 1.25, 1.3, expected=1.6), reflected=9))) == []


@pytest.mark.parametrize(
    ("graded", "is_noted"),
    [
        (trial(9, "rows", 1.25, 1.3), False),  # an own best is no surprise to the fleet
        (trial(9, "rows", 1.25, 1.1), False),
        (trial(9, "rows", 1.25, 1.25, verdict="tied"), False),
        (trial(9, "rows", 1.25, 1.25 + 1e-9, verdict="new best"), False),
        (trial(9, "rows", 1.25, 1.3, verdict="new best"), False),  # the check had said so
        (trial(9, "rows", 1.25, 1.3, expected=None, verdict="new best"), True),
        (trial(9, "rows", None, 1.3, expected=None, verdict="new best"), True),
        (trial(9, "rows", 1.25, 1.1, expected=1.2), True),
        (trial(9, "rows", 1.25, None, reason="row 7 overlaps", expected=1.2), False),
        (trial(9, "rows", 1.25, None, reason="out of memory", expected=1.2), True),
    ],
)
def test_a_note_is_written_where_something_was_not_expected(graded, is_noted):
    before = trial(8, "rows", 1.25, None, reason="row 12 overlaps")
    calls = reflect(situation(before, graded, reflected=8))
    assert len(notes(calls)) == is_noted
    (remembered,) = [call for call in calls if isinstance(call, Remember)]
    assert remembered.reflected == 9
    assert ("write no note" in said(calls)) == (not is_noted)


def test_a_check_that_is_always_off_surprises_once():
    """As where it measures on other data than the grader, or one of them is noisy."""
    off = [trial(number, "rows", 1.25, 1.2, expected=1.2 + 0.01 * (-1) ** number) for number in range(3, 8)]
    first, usual = situation(off[0]), situation(*off, trial(9, "rows", 1.25, 1.2, expected=1.22), reflected=7)
    much = situation(*off, trial(9, "rows", 1.25, 1.2, expected=1.24), reflected=7)
    failed = [trial(number, "rows", 1.25, None, reason="row 7 overlaps", expected=1.2) for number in range(10, 20)]
    after = situation(*off, *failed, trial(20, "rows", 1.25, 1.2, expected=1.22), reflected=19)
    assert [len(notes(reflect(shown))) for shown in (first, usual, much, after)] == [1, 0, 1, 0]


def test_a_gain_by_what_had_never_gained_is_a_surprise():
    fruitless = [trial(number, "rows", 1.25, 1.2) for number in (6, 7)]
    (note,) = notes(reflect(situation(*fruitless, trial(9, "rows", 1.25, 1.3, verdict="new best"), reflected=7)))
    assert "`rows` had gained nothing before; from #8 it gained 0.05" in note.body
    paid, gained = trial(8, "rows", 1.25, 1.3), trial(9, "rows", 1.3, 1.4, verdict="new best")
    assert notes(reflect(situation(*fruitless, paid, gained, reflected=8))) == []


def test_a_note_is_short():
    (note,) = notes(reflect(situation(trial(9, "rows", 1.25, 1.3, expected=1.35, verdict="new best"))))
    assert len(note.body.split()) < 50
