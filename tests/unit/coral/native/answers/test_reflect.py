"""The answer to `reflect`: a note that ties the change to the score."""

import pytest
from native_situations import notes, said, situation, trial

from coral.native.answers.reflect import reflect
from coral.native.situation import Remember


def test_a_note_ties_the_change_to_the_score():
    calls = reflect(situation(trial(9, "rows", 1.25, 1.3)))
    (note,) = notes(calls)
    assert note.attempts == (8, 9)
    assert note.about == (9,)
    assert note.kind == "note"
    assert "+0.0500" in note.title
    for words in (
        "#8",
        "#9",
        "1.2500",
        "1.3000",
        "a.x 1 -> 2",
        "3,456 evaluations",
        "12 moves",
        "`rows` has improved 1 of",
    ):
        assert words in note.body, words
    assert any(isinstance(call, Remember) and call.block == "learned" for call in calls)
    assert said(calls)


@pytest.mark.parametrize(
    ("graded", "words"),
    [
        (trial(9, "shake", 1.25, 1.1), "found nothing better in 12 moves"),
        (trial(9, "shake", 1.25, 1.25, verdict="tied"), "The same score again"),
        (trial(9, "shake", 1.25, 1.26, verdict="tied"), "which is no more than grades of one commit do"),
        (trial(9, "shake", 1.25, None, reason="two overlap", expected=1.5), "two overlap"),
        (trial(9, "shake", 1.25, 1.3, expected=1.6), "the check is not the whole truth"),
        (trial(9, "shake", 1.25, 1.3, expected=None, evaluations=0), "There is no public check"),
        (trial(9, "shake", None, 1.3, start=None, verdict="new best"), "#?"),
    ],
)
def test_each_note_says_what_its_own_facts_say(graded, words):
    (note,) = notes(reflect(situation(graded)))
    assert words in note.title + note.body
    assert all(number is not None for number in note.attempts)


def test_no_attempt_gets_two_notes():
    assert notes(reflect(situation(trial(9, "rows", 1.25, 1.3, noted=True)))) == []
