"""A variable writes its own values and no others."""

import pytest

from coral.native.search.numeric.variables import LineComment, Variable, VariableKind, variable_of_literal


def test_an_integer_is_rounded_and_a_choice_is_one_of_its_words():
    assert Variable(start=0, end=1, kind=VariableKind.INTEGER, value=1).text(2.6) == "3"
    words = ("slow", "fast", "faster")
    choice = Variable(start=0, end=4, kind=VariableKind.CHOICE, value=0, choices=words)
    assert [choice.text(k) for k in (0, 1, 2, 7)] == ["slow", "fast", "faster", "faster"]


@pytest.mark.parametrize(
    ("literal", "kind"),
    [("1_000", VariableKind.INTEGER), ("-2e3", VariableKind.REAL), ("0x10", None), ("1e999", None), ("9" * 16, None)],
)
def test_a_literal_is_a_variable_where_it_can_be_written_back(literal, kind):
    found = variable_of_literal(literal, 5)
    assert (found.kind if found else None) == kind


def test_a_comment_that_says_nothing_usable_is_none():
    for line in ("x = 1", "x = 1  # range: 2..1", "x = a  # choices: a", "x = 1  # range: a..b"):
        assert LineComment.read(line) == LineComment()
