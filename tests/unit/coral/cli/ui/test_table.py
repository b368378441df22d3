"""Tables that fit: which column shrinks, which is left out, what is aligned."""

from hypothesis import given, settings, strategies as st
from rich.console import Console
from rich.text import Text

from coral.cli.ui.table import table
from coral.views import format


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


def test_each_cell_keeps_its_styles() -> None:
    console = Console(width=40, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(table(["who", "says"], [[Text("a", style="bold"), Text.assemble("b", ("c", "red"))]], 40))
    assert capture.get().splitlines()[1].rstrip() == "\x1b[1ma\x1b[0m    b\x1b[31mc\x1b[0m"


def test_columns_shrink_or_are_left_out_in_their_order() -> None:
    rows: list[list[object]] = [["17", "a title that is rather long for this", "agent-1"]]
    assert _shown([">#", "title*", "agent"], rows, 80)[1] == "17  a title that is rather long for this  agent-1"
    assert _shown([">#", "title*", "agent"], rows, 40)[1] == "17  a title that is rather lon…  agent-1"
    assert _shown([">#", "title*", "agent?"], rows, 22) == [" #  title", "17  a title that is r…"]
    assert _shown(["agent*??", "title*"], [["agent-1 and others", "a longer title"]], 20)[1] == "agent-1 …  a longer…"
    assert _shown(["agent*??", "title*"], [["agent-1 and others", "a longer title"]], 17) == ["title", "a longer title"]
    rows = [["agent-1", "17", "working"]]
    assert _shown(["agent", ">tries", "phase"], rows, 12) == ["agent    tr…", "agent-1   17"]
    assert _shown(["agent", ">tries", "phase"], rows, 9) == ["agent", "agent-1"]


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
