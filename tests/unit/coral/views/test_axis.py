"""Axes: where they begin, what is written at them, which points share a place."""

import math

import pytest
from hypothesis import example, given, strategies as st

from coral.views import axis

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([1.82, 2.626, 2.63, 2.636], 1),  # the first step hides all others
        ([1.82, 2.0, 2.626, 2.631, 2.636], 2),  # ... also where it is the second
        ([1.82, 2.6204, 2.6288, 2.6307, 2.6313], 1),  # of those after it none hides the next
        ([0.777, 0.033], 0),  # two steps are shown whatever they are
        ([1.0, 2.0, 3.0, 4.0], 0),
        ([8.0, 4.0, 2.0, 1.0, 0.5], 0),  # halves: none hides the next
        ([1.0, 1.1, 9.0], 0),  # nothing would be left after the wall
        ([1.0, 9.0, 9.0], 0),  # ... but a flat line
        ([100.0, 10.0, 1.0, 0.5], 2),  # walls behind walls
        ([], 0),
        ([1.0], 0),
    ],
)
def test_an_axis_begins_behind_a_step_that_hides_the_others(values: list[float], first: int) -> None:
    assert axis.first_shown(values) == first


@given(st.lists(FINITE, max_size=20))
@example([-1.7976931348623157e308, 1.7976931348623157e308, 0.0])
def test_an_axis_begins_somewhere(values: list[float]) -> None:
    first = axis.first_shown(values)
    assert first == 0 or first <= len(values) - 2


def test_ticks_are_round() -> None:
    assert axis.ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert axis.ticks(2.6263, 2.6343) == pytest.approx([2.628, 2.63, 2.632, 2.634])
    assert axis.ticks(3.0, 3.0) == [3.0]
    assert axis.ticks(math.nan, 3.0) == []


@given(FINITE, FINITE)
def test_ticks_lie_on_the_axis(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    found = axis.ticks(low, high)
    slack = (high / 2 - low / 2) * 1e-6 + abs(high) * 1e-12 + abs(low) * 1e-12
    assert len(found) <= 7
    assert all(low - slack <= tick <= high + slack for tick in found)


def test_powers_and_times() -> None:
    assert axis.powers(0.002, 30.0) == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert len(axis.powers(1e-12, 1e12)) <= 6
    assert axis.minutes(144.0) == [0.0, 30.0, 60.0, 90.0, 120.0]
    assert axis.minutes(86400.0 * 30)[:2] == [0.0, 86400.0 * 5]
    assert axis.minutes(0.5) == [0.0]


def test_the_first_of_each_cell_is_kept() -> None:
    assert axis.first_in_cells([1, 2, 11, 12, 25], lambda number: number // 10 if number < 20 else None) == [1, 11]
