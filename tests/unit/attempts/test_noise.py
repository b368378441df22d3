"""Noise is estimated from what was measured twice or more, near the level that is asked about."""

import math
import random

import pytest

from attempts.noise import Noise, NoiseSetting, deviation, mean, median, noise_at

ESTIMATED = NoiseSetting(deviation=None)


@pytest.mark.parametrize(
    ("scores", "middle"), [([3.0], 3.0), ([1.0, 2.0], 1.5), ([5.0, 1.0, 2.0], 2.0), ([-1.7e308, 1.7e308], 0.0)]
)
def test_the_median(scores: list[float], middle: float) -> None:
    assert median(scores) == middle


def test_the_mean_of_equal_scores_is_that_score() -> None:
    assert mean([0.1] * 3) == 0.1
    assert mean([1.7e308] * 10) == 1.7e308
    assert deviation([0.1] * 7) == 0.0
    assert deviation([1.0, 3.0]) == pytest.approx(math.sqrt(2))


def test_a_given_noise_is_known_and_a_share_grows_with_the_level() -> None:
    assert noise_at(NoiseSetting(deviation=0.5), 40.0, []) == Noise(0.5, math.inf)
    assert noise_at(NoiseSetting(deviation=0.02, relative=True), -40.0, [[1.0, 9.0]]) == Noise(0.8, math.inf)


def test_without_a_second_measurement_nothing_is_known_and_no_difference_is_believed() -> None:
    unknown = noise_at(ESTIMATED, 1.0, [])
    assert unknown == Noise(0.0, 0.0)
    assert unknown.bar(1.0, 1.0) == math.inf


def test_groups_are_pooled_about_their_own_means_nearest_in_level_first() -> None:
    near, far = [[0.0, 2.0], [10.0, 12.0]], [[1000.0, 3000.0]] * 30
    found = noise_at(ESTIMATED, 5.0, [*far, *near])
    assert found.freedom == 20  # two of the near ones, the rest of the far ones
    found = noise_at(ESTIMATED, 5.0, [*near * 10, *far])
    assert (found.deviation, found.freedom) == (pytest.approx(math.sqrt(2)), 20)


def test_equal_scores_have_no_noise_at_whatever_level() -> None:
    assert noise_at(ESTIMATED, 0.0, [[0.1, 0.1, 0.1]]) == Noise(0.0, 2)
    assert noise_at(ESTIMATED, 1e6, [[1e6, 1e6 + 1e-9]]) == Noise(0.0, 1)


def test_one_wild_measurement_of_many_is_left_out() -> None:
    chance = random.Random(1)
    calm = [chance.gauss(0, 1) for _ in range(12)]
    assert noise_at(ESTIMATED, 0.0, [[*calm, 900.0]]) == noise_at(ESTIMATED, 0.0, [calm])
    assert noise_at(ESTIMATED, 0.0, [[0.0, 0.1, 900.0]]).deviation > 400  # of three, none is wild


def test_scores_that_are_mostly_equal_are_noisy_all_the_same() -> None:
    assert noise_at(ESTIMATED, 0.0, [[0.0] * 6 + [0.1] * 5]).deviation == pytest.approx(0.052, rel=0.01)


@pytest.mark.parametrize(("freedom", "quantile"), [(math.inf, 3.0), (200, 3.04), (20, 3.42), (9, 4.09), (5, 5.51)])
def test_the_bar_is_wider_the_less_is_known(freedom: float, quantile: float) -> None:
    """As tables of the t distribution have it for the share of a normal distribution beyond three deviations; below
    five degrees of freedom the expansion is too narrow."""
    assert Noise(2.0, freedom).bar(0.0, 1.5) == pytest.approx(2.0 * 1.5 * quantile, rel=0.02)


def test_differences_in_the_last_digits_are_none() -> None:
    exact = Noise(0.0, math.inf)
    assert exact.bar(2.6, 1.0) == pytest.approx(2.6e-9)
    assert exact.bar(0.001, 1.0) == pytest.approx(1e-12)
    assert exact.bar(0.0, 1.0) == 0.0
