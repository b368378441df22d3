"""The score curve: steps, of any figures and in any size."""

from hypothesis import example, given
from hypothesis import strategies as st

from coral.cli.ui.plot import curve


def test_a_curve_is_a_staircase() -> None:
    lines = curve([(0.0, 1.0), (50.0, 2.0), (100.0, 2.0)], 24, 2)
    assert lines == ["2 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉", "1 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀", "  └0──────────1 min 40 s"]
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
