"""What is left of a budget, in words that are never more than there is."""

from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.views.prompt import budget


def test_once_some_of_a_budget_is_gone_not_all_of_it_is_left() -> None:
    left = [budget(Rules(budget_seconds=180.0), Fleet(), clock)["text"] for clock in (0.0, 2.0, 70.0, 500.0)]
    assert left == [f"{text} of 3 min are left" for text in ("3 min", "2 min 58 s", "1 min 50 s", "0 s")]
