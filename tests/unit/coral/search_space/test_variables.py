"""What may be varied in a file, by its kind, and what a variable writes: its own values and no others."""

import math

import pytest

from coral.search_space.declarations import declared_variables
from coral.search_space.variables import Variable, VariableKind, find_variables, variable_of_literal


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


@pytest.mark.parametrize("comment", ["", "range: 2..1", "choices: 1", "range: a..b", "range: 1..nan"])
def test_a_comment_that_says_nothing_usable_changes_nothing(comment):
    (found,) = declared_variables("a.cfg", f"x = 1  # {comment}\n", [])
    assert (found.kind, found.low, found.high) == (VariableKind.INTEGER, -math.inf, math.inf)


def literals(name: str, text: str) -> list[str]:
    return [text[variable.start : variable.end] for variable in declared_variables(name, text, [])]


def test_json_numbers_and_booleans_are_found_by_structure():
    rows = '[{"x": 1, "y": 2}, {"x": 3.5, "y": 4}]'
    text = f'{{"name": "1.5", "on": true, "none": null, "list": [1, -2.5e-3], "rows": {rows}}}'
    assert literals("a.json", text) == ["true", "1", "-2.5e-3", "1", "2", "3.5", "4"]
    variables = {variable.name: variable for variable in declared_variables("a.json", text, [])}
    assert variables["rows[0].x"].column == variables["rows[1].x"].column != variables["rows[0].y"].column
    assert variables["rows[0].x"].row == variables["rows[0].y"].row != variables["rows[1].x"].row
    # One real in a column makes the column real: 1 was merely written without a point.
    assert variables["rows[0].x"].kind is VariableKind.REAL
    assert variables["rows[0].y"].kind is VariableKind.INTEGER


def test_lists_side_by_side_are_one_table():
    text = '{"xs": [1.5, 2.5], "ys": [3.5, 4.5], "z": [5.5]}'
    variables = {variable.name: variable for variable in declared_variables("a.json", text, [])}
    assert variables["xs[1]"].row == variables["ys[1]"].row != variables["xs[0]"].row
    assert variables["z[0]"].row not in (variables["xs[0]"].row, variables["xs[1]"].row)


def test_python_is_read_by_tokens():
    text = '"""Doc 1.5"""\n# 2.5\nx = [-1.5, 2, 3-4, f(-2)]\ny = 0x10; z = 3j; w = 1_000\n'
    text += 'on = True\nwhile True:\n    s = "7"\n'
    assert literals("a.py", text) == ["-1.5", "2", "3", "4", "-2", "1_000", "True"]
    assert find_variables("a.py", "def broken(:\n  1") == []


def test_comments_fix_bound_and_offer():
    text = (
        "a = 1  # fixed\nb = 0.5  # range: 0.1..0.9\nc = -3  # range: -5 .. 5\n"
        'm = "adam"  # choices: "adam", "sgd"\nn = fast  # choices: slow, fast, faster\n'
    )
    variables = declared_variables("a.cfg", text, [])
    assert literals("a.cfg", text) == ["0.5", "-3", '"adam"', "fast"]
    assert (variables[0].low, variables[0].high) == (0.1, 0.9)
    assert (variables[1].low, variables[1].high) == (-5, 5)
    assert variables[2].choices == ('"adam"', '"sgd"')
    assert variables[3].choices == ("slow", "fast", "faster")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lr = 0.5 # was 0.3", ["0.5"]),
        ('version = "1.2.3"', []),
        ("1.2.3", []),
        ('n = "0.25"', ["0.25"]),
        ("2024-01-02 12:30", []),
        ("x1 = 3x 007 a-1", []),
        ("4, -5,6.5", ["4", "-5", "6.5"]),
        ("f(-.5) = 2e-3", ["-.5", "2e-3"]),
        ("3 - 4", ["3", "4"]),
        ("#define N 3", ["3"]),
        ('puts("take 5")', []),
    ],
)
def test_any_other_text_is_read_with_care(line, found):
    assert literals("a.txt", line) == found


def test_a_run_of_like_lines_is_a_table():
    variables = declared_variables("p.csv", "x,y\n1.5,2\n3.5,4\n5.5,6\n", [])
    assert len({variable.row for variable in variables}) == 3
    assert len({variable.column for variable in variables}) == 2


def test_a_huge_integer_is_an_identifier():
    assert find_variables("a.json", "[123456789012345678901234567890, 17]")[0].value == 17
