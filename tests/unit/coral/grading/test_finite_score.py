"""A score is any finite real number; anything else is refused with the reason."""

from fractions import Fraction

import pytest

from coral.grading.finite_score import finite_score


@pytest.mark.parametrize("value", [0, 1.5, -3, Fraction(1, 2), 2**53])
def test_a_score_is_any_finite_real_number(value: object) -> None:
    assert finite_score(value) == value
    assert type(finite_score(value)) is float


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, "must be a number, got True"),
        (None, "must be a number, got None"),
        ("2.5", "must be a number, got '2.5'"),
        ([2.5], "must be a number, got a list"),
        (1j, "must be a number, got a complex"),
        (float("nan"), "must be finite, got nan"),
        (float("inf"), "must be finite, got inf"),
        (float("-inf"), "must be finite, got -inf"),
        (10**400, "too large"),
        (Fraction(10**400, 3), "too large"),
    ],
)
def test_what_is_no_score_is_refused_with_the_reason(value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        finite_score(value)
