"""What is left of a budget, in words that are never more than there is."""

import pytest

from coral.fleet.policy import duration
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.views.prompt import budget


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (41.6, "42 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (179, "2 min"),
        (0.05 * 3600, "3 min"),
        (7199, "119 min"),
        (7200, "2 h 00 min"),
        (3 * 3600 + 5 * 60 + 59, "3 h 05 min"),
    ],
)
def test_a_length_of_time_is_told_in_whole_minutes(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_once_some_of_a_budget_is_gone_not_all_of_it_is_left() -> None:
    left = [budget(Rules(budget_seconds=180.0), Fleet(), clock)["text"] for clock in (0.0, 2.0, 70.0, 500.0)]
    assert left == [f"{each} of 3 min are left" for each in ("3 min", "2 min", "110 s", "0 s")]
