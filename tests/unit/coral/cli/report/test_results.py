"""What the best of a report changed: every character of it is seen."""

from coral.cli.report.results import coloured


def test_a_difference_shows_characters_that_change_the_order_of_others() -> None:
    said = coloured('+if user == "admin\u202e": # check')
    assert "\\u202e" in said
    assert "\u202e" not in said
