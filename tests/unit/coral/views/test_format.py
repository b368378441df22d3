"""How numbers, durations, money and foreign text are written."""

import pytest

from coral.views import format


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([2.634292402, 1.82], ["2.6343", "1.82"]),
        ([2.634292402, 2.634291], ["2.634292", "2.634291"]),
        ([2.6342924021, 2.6342924022], ["2.6343", "2.6343"]),  # nine digits do not tell them apart
        ([2.634292402, 2.634292402, None, "x"], ["2.6343", "2.6343", format.NONE, format.NONE]),
        ([1234567.25, 3.0], ["1234567", "3"]),  # whole numbers stay whole
        ([1e300, float("inf")], ["1e+300", "inf"]),
        ([], []),
    ],
)
def test_scores_have_as_many_digits_as_tell_them_apart(values: list[object], shown: list[str]) -> None:
    assert format.scores(values) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (-1, "0 s"), (0.0124, "0.012 s"), (1.25, "1.2 s"), (9.96, "10 s"), (59.9, "59 s")),
        *((60, "1 min"), (61, "1 min 1 s"), (3599, "59 min"), (3600, "1 h"), (3660, "1 h 1 min"), (7199, "1 h 59 min")),
        *((86400 * 2 + 3600 * 4, "2 d 4 h"), (float("inf"), "11574 d 1 h")),
        *((float("nan"), "–"), (None, "–"), (True, "–")),
    ],
)
def test_durations(seconds: object, text: str) -> None:
    assert format.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (812, "812"), (999.4, "999"), (12_345, "12.3k"), (999_949, "999.9k"), (999_950, "1.00M"), (None, "0")],
)
def test_tokens(count: object, text: str) -> None:
    assert format.tokens(count) == text


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0, "$0.00"), (0.0123, "$0.012"), (0.5, "$0.50"), (0.996, "$1.00"), (1234.5, "$1,234.50"), (None, ""), (-1, "")],
)
def test_money(dollars: object, text: str) -> None:
    assert format.money(dollars) == text


def test_usage_in_a_line() -> None:
    assert format.usage({"input": 1200, "cached": 5, "output": 3, "cost": 0.1}) == (
        "1.2k in, 5 from cache, 3 out, $0.10"
    )
    assert format.usage({"input": 1, "cached": 0, "output": 2, "cost": None}) == "1 in, 2 out"
    assert format.usage({"input": 1, "cached": 0, "output": 2, "cost": 0.0}) == "1 in, 2 out"
    assert format.usage({"input": 0, "cached": 0, "output": 0, "cost": 0.1}) == "$0.10"
    assert format.spending({"tokens": 1200, "money": 0.1}) == "1.2k tokens, $0.10"
    assert format.spending({"tokens": 0, "money": None}) == format.spending({}) == ""


def test_scores_have_ten_digits_and_nothing_else() -> None:
    assert [format.score(value) for value in (2.6359830855123, 3, 1e-12)] == ["2.635983086", "3", "1e-12"]
    assert {format.score(value) for value in (None, "x", True)} == {"–"}
    assert format.delta(2.5412, 2.5308) == "+0.0104"
    assert format.delta(None, 1.0) == ""
    assert format.delta(-1.79e308, 1e308) == "-1.79769e+308"  # and not infinite: no score is


def test_a_score_of_nothing_has_no_sign() -> None:
    """A grader that returns the negative of an error gives -0.0 where there is none."""
    assert format.score(-0.0) == "0"
    assert format.scores([-0.0, 1.5]) == ["0", "1.5"]
    assert format.delta(-0.0, 0.0) == "+0"


def test_ages_and_durations_in_one_unit() -> None:
    assert format.ago("2026-01-01T00:00:00Z", now=1767225600 + 63) == "1 min ago"
    assert format.ago("2026-01-01T00:00:00Z", now=1767225600) == "just now"
    assert format.ago("yesterday") == "–"
    assert [format.run_clock(seconds) for seconds in (7, 247, 3847, -1)] == ["0:07", "4:07", "1:04:07", "0:00"]
    assert [format.duration(seconds, units=1) for seconds in (1.9, 61, 5400, 1e5)] == ["1 s", "1 min", "1 h", "1 d"]


def test_no_time_is_beyond_the_calendar() -> None:
    assert format.moment(1e9) == "2001-09-09 01:46 UTC"
    far = "9999-12-31 23:59 UTC"
    assert [format.moment(seconds) for seconds in (1e300, float("nan"), -1e300)] == [far, far, "1970-01-01 00:00 UTC"]


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert "\x1b" not in format.line("a\x1b[2Jb\nc") + format.clean("a\x1b]0;title\x07b")


@pytest.mark.parametrize(
    ("names", "text"),
    [("", ""), ("a", "a"), ("ab", "a and b"), ("abcd", "a, b, c and d"), ("abcdef", "a, b, c, d and 2 more")],
)
def test_a_sentence_names_a_few(names: str, text: str) -> None:
    assert format.some_of(list(names)) == text


def test_source_text_shows_what_changes_the_order_of_others() -> None:
    assert format.source("a \u202e\x1b[2J } \u2066b\n\tc") == "a \\u202e[2J } \\u2066b\n\tc"
