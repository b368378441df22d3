"""Curves of dots: staircases, points, colours; of any figures they fit."""

from hypothesis import example, given, strategies as st

from coral.cli.ui.curve import BestLine, Dot, draw


def drawn(points: list[tuple[float, float]], dots: list[Dot], width: int, height: int) -> list[str]:
    end = points[-1][0] if points else 0.0
    return [text.plain for text in draw([BestLine(points)], dots, width, height, end, "1 min 40 s")]


def test_a_curve_is_a_staircase() -> None:
    lines = drawn([(0.0, 1.0), (50.0, 2.0), (100.0, 2.0)], [], 24, 2)
    assert lines == ["2 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉", "1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀", "  └0──────────1 min 40 s"]
    assert drawn([], [], 80, 8) == []
    assert drawn([(0.0, 1.0)], [], 8, 8) == []


def test_the_axis_begins_where_the_steps_can_be_told_apart() -> None:
    """The seed is far below; without this the last two steps, the whole story, would be one flat line."""
    points = [(0.0, 1.82), (10.0, 2.62), (20.0, 2.63), (30.0, 2.63598), (40.0, 2.63598)]
    lines = drawn(points, [], 60, 4)
    assert lines[0].startswith("2.636 ┤")
    assert lines[3].startswith("≤2.62 ┤"), "the seed lies below, at the edge"
    risen = [line[line.index("┤" if "┤" in line else "│") + 1 :].replace("⠀", "") != "" for line in lines[:4]]
    assert risen == [True] * 4


def test_attempts_are_points_in_the_colours_of_their_agents() -> None:
    points = [(0.0, 0.0), (100.0, 1.0), (200.0, 1.0)]
    dots = [Dot(50.0, 0.5, "cyan"), Dot(150.0, -5.0, "red"), Dot(160.0, 1.0, "magenta")]
    texts = draw([BestLine(points, "green")], dots, 46, 8, 200.0, "")
    styles = {span.style for text in texts for span in text.spans}
    assert "cyan" in styles
    assert [span.style for span in texts[7].spans].count("red") == 1, "what lies below the axis is at its edge"
    assert texts[7].plain.startswith("≤0 ┤")
    assert "magenta" not in styles, "a line keeps its colour"


def test_what_is_worse_lies_at_the_upper_edge_where_less_is_better() -> None:
    points = [(0.0, 90.0), (10.0, 1.1), (20.0, 1.05), (30.0, 1.0)]
    lines = drawn(points, [], 40, 4)
    assert [lines[row].split("┤")[0].strip() for row in (0, 3)] == ["≥1.1", "1"]


def test_a_line_ends_where_its_run_ended() -> None:
    short, long = BestLine([(0.0, 2.0), (50.0, 2.0)], "red"), BestLine([(0.0, 1.0), (100.0, 1.0)], "blue")
    top, bottom = (text.plain for text in draw([short, long], [], 23, 2, 100.0, "")[:2])
    assert top == "2 ┤" + "⠉" * 10 + "⠁" + "⠀" * 9
    assert bottom == "1 ┤" + "⣀" * 20


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(FINITE, min_size=1, max_size=30),
    st.lists(st.tuples(st.floats(0, 40), FINITE), max_size=10),
    st.integers(min_value=0, max_value=160),
    st.integers(min_value=0, max_value=12),
)
@example([1.7976931348623157e308, -1.7976931348623157e308], [], 80, 8)
def test_a_curve_of_anything_fits(
    values: list[float], attempts: list[tuple[float, float]], width: int, height: int
) -> None:
    dots = [Dot(x, y, "red") for x, y in attempts]
    lines = drawn([(float(at), value) for at, value in enumerate(values)], dots, width, height)
    assert all(len(line) <= max(width, 0) for line in lines)
    assert len(lines) in (0, height + 1)
