"""How things look: numbers, times, foreign text, columns, the curve."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from coral.cli.commands.diff import coloured
from coral.cli.run_data import lenient_json
from coral.cli.ui import format
from coral.cli.ui.plot import curve
from coral.cli.ui.table import table
from coral.views import usage


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1.25, "1.2s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (60, "1m"),
        (61, "1m 1s"),
        (3599, "59m"),
        (3600, "1h"),
        (3660, "1h 1m"),
        (86400 * 2 + 3600 * 4, "2d 4h"),
        (float("nan"), "–"),
        (None, "–"),
        (True, "–"),
    ],
)
def test_spans(seconds: object, text: str) -> None:
    assert format.span(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (812, "812"), (999.4, "999"), (12_345, "12.3k"), (999_949, "999.9k"), (999_950, "1.00M"), (None, "0")],
)
def test_tokens(count: object, text: str) -> None:
    assert usage.tokens(count) == text


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0, "$0.00"), (0.0123, "$0.012"), (0.5, "$0.5"), (0.996, "$1.00"), (1234.5, "$1,234.50"), (None, ""), (-1, "")],
)
def test_money(dollars: object, text: str) -> None:
    assert usage.money(dollars) == text


def test_usage_in_a_line() -> None:
    assert usage.usage_line({"input": 1200, "cached": 5, "output": 3, "cost": 0.1}) == (
        "1.2k in, 5 from cache, 3 out, $0.1"
    )
    assert usage.usage_line({"input": 1, "cached": 0, "output": 2, "cost": None}) == "1 in, 2 out"
    assert usage.brief({"tokens": 1200, "money": 0.1}) == "1.2k tokens, $0.1"
    assert usage.brief({"tokens": 0, "money": None}) == usage.brief({}) == ""


def test_scores_have_ten_digits_and_nothing_else() -> None:
    assert [format.score(value) for value in (2.6359830855123, 3, 1e-12, None, "x", True)] == [
        "2.635983086",
        "3",
        "1e-12",
        "–",
        "–",
        "–",
    ]
    assert format.delta(2.5412, 2.5308) == "+0.0104"
    assert format.delta(None, 1.0) == ""


def test_ages() -> None:
    assert format.ago("2026-01-01T00:00:00Z", now=1767225600 + 63) == "1m ago"
    assert format.ago("2026-01-01T00:00:00Z", now=1767225600) == "just now"
    assert format.ago("yesterday") == "–"
    assert [format.clock(seconds) for seconds in (7, 247, 3847, -1)] == ["0:07", "4:07", "1:04:07", "0:00"]


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert "\x1b" not in format.line("a\x1b[2Jb\nc") + format.clean("a\x1b]0;title\x07b")
    assert "\x1b" not in coloured("+\x1b[2J").removeprefix("\x1b[32m").removesuffix("\x1b[0m")


@given(st.binary(max_size=300))
def test_a_damaged_file_reads_as_something(data: bytes) -> None:
    found = list(lenient_json._objects(data.split(b"\n")))
    for each in found:
        for name in each.data:
            each.text(name), each.number(name), each.integer(name), each.each(name), each.texts(name)


def _shown(columns: list[str], rows: list[list[object]], width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table(columns, rows, width))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_decimal_points_stand_below_each_other() -> None:
    assert _shown([".score", "who"], [["2.5", "a"], ["12.25", "b"], ["–", "c"], ["3", "d"]], 40) == [
        "score  who",
        " 2.5   a",
        "12.25  b",
        " –     c",
        " 3     d",
    ]


def test_what_has_no_room_at_all_is_cut_at_the_edge() -> None:
    rows: list[list[object]] = [["agent-1", "17", "working"]]
    assert _shown(["agent", ">tries", "phase"], rows, 12) == ["agent    tr…", "agent-1   17"]
    assert _shown(["agent", ">tries", "phase"], rows, 9) == ["agent", "agent-1"]


def test_each_cell_keeps_its_styles() -> None:
    console = Console(width=40, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(table(["who", "says"], [[Text("a", style="bold"), Text.assemble("b", ("c", "red"))]], 40))
    assert capture.get().splitlines()[1].rstrip() == "\x1b[1ma\x1b[0m    b\x1b[31mc\x1b[0m"


def test_what_gives_way_gives_way_first() -> None:
    rows: list[list[object]] = [["17", "a title that is rather long for this", "agent-1"]]
    assert _shown([">#", "title*", "agent"], rows, 80)[1] == "17  a title that is rather long for this  agent-1"
    assert _shown([">#", "title*", "agent"], rows, 40)[1] == "17  a title that is rather lon…  agent-1"
    assert _shown([">#", "title*", "agent?"], rows, 22) == [" #  title", "17  a title that is r…"]
    assert _shown(["agent*??", "title*"], [["agent-1 and others", "a longer title"]], 20)[1] == "agent-1 …  a longer…"
    assert _shown(["agent*??", "title*"], [["agent-1 and others", "a longer title"]], 17) == ["title", "a longer title"]


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.text(max_size=30), min_size=4, max_size=4), max_size=5),
    st.integers(min_value=60, max_value=200),
)
def test_a_table_fits(rows: list[list[str]], width: int) -> None:
    cells: list[list[object]] = [
        [format.line(row[0], 12), format.line(row[1], 5), *(Text(format.line(cell, 30)) for cell in row[2:])]
        for row in rows
    ]
    assert all(len(line) <= width for line in _shown(["name", ".n", "one*", "two*?"], cells, width))


def test_a_curve_is_a_staircase() -> None:
    lines = curve([(0.0, 1.0), (50.0, 2.0), (100.0, 2.0)], 24, 2)
    assert lines == ["2 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉", "1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀", "  └0──────────────1m 40s"]
    assert curve([], 80, 8) == []
    assert curve([(0.0, 1.0)], 8, 8) == []


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    st.integers(min_value=0, max_value=160),
    st.integers(min_value=0, max_value=12),
)
@example([1.7976931348623157e308, -1.7976931348623157e308], 80, 8)
def test_a_curve_of_anything_fits(values: list[float], width: int, height: int) -> None:
    lines = curve([(float(at), value) for at, value in enumerate(values)], width, height)
    assert all(len(line) <= max(width, 0) for line in lines)
    assert len(lines) in (0, height + 1)
