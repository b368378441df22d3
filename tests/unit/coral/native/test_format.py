"""Scores as text: as many digits as show what differs."""

from coral.native.format import attempt_list, decimals, difference, score_change, score_text


def test_a_change_is_shown_with_the_digits_that_differ():
    assert score_change(2.5421, 2.5567) == "2.5421 -> 2.5567"
    assert score_change(2.63598308, 2.63598309) == "2.6359830800 -> 2.6359830900"
    assert score_change(None, 1.0) == "no score -> 1.0000"
    assert difference(1.0, 1.5) == "+0.5000"
    assert difference(1.0 + 1e-13, 1.0) == "+0.0000000000"
    assert difference(None, 1.5) == ""
    assert decimals(1.0) == decimals(1.0, 1.0, None) == 4
    assert score_text(1e300) == "1e+300"


def test_attempts_are_listed():
    assert attempt_list([3, 5, 7]) == "#3, #5 and #7"
    assert attempt_list([3]) == "#3"
    assert attempt_list([]) == ""
