"""What the local search of an episode does with the reals."""

import pytest
from native_problems import problem

from coral.native.search.local_search import MOST_BY_SURROGATE, are_gradients_affordable
from coral.native.search.numeric.surrogate import MOST_TERMS


@pytest.mark.parametrize(("count", "affordable"), [(MOST_BY_SURROGATE, True), (MOST_BY_SURROGATE + 1, False)])
def test_a_noisy_check_of_too_many_reals_is_left_to_compass_search(count: int, affordable: bool) -> None:
    task = problem(sum, [0.5] * count)
    start = task.measured(task.space.start).measurement
    assert are_gradients_affordable(task, start, noisy=True) is affordable
    assert are_gradients_affordable(task, start, noisy=False)


def test_a_surrogate_can_be_fitted_to_as_many_reals_as_it_gets() -> None:
    assert 1 + MOST_BY_SURROGATE <= MOST_TERMS
