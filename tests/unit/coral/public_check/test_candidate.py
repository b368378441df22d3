"""What is measured of a candidate: a score, and how far it is inside its constraints."""

from coral.public_check.candidate import Measurement


def test_a_candidate_is_feasible_within_all_constraints() -> None:
    assert Measurement(1.0).feasible
    assert Measurement(1.0, slack=(0.0, 2.0)).feasible
    assert not Measurement(1.0, slack=(0.5, -1e-9)).feasible


def test_a_candidate_without_a_score_is_not_feasible() -> None:
    assert not Measurement(error="it raised").feasible


def test_the_worst_constraint_is_the_one_with_the_least_slack() -> None:
    assert Measurement(1.0, slack=(0.5, -0.25, 3.0)).worst == -0.25
    assert Measurement(1.0).worst == 0.0
