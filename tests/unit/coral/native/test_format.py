"""Scores as text: as many digits as show what differs."""

from coral.native.format import attempt_list, score_text


def test_scores_are_shown_with_the_digits_that_differ():
    assert [score_text(score) for score in (2.5, 2.635983081, 2.635983082, 1e300, None)] == [
        "2.5",
        "2.635983081",
        "2.635983082",
        "1e+300",
        "no score",
    ]


def test_attempts_are_listed():
    assert attempt_list([3, 5, 7]) == "#3, #5 and #7"
    assert attempt_list([3]) == "#3"
    assert attempt_list([]) == ""
