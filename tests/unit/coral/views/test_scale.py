"""A difference of scores is told relative to the gain so far and to the noise, where these are known."""

import pytest
from sample import attempt

from attempts.record import Verdict
from coral.views.scale import Scale


@pytest.mark.parametrize(
    ("scale", "text"),
    [
        (Scale(), "-0.5 against #3"),
        (Scale(seed=3), "-0.5 against the seed"),
        (Scale(gain=2.0), "-0.5 against #3, 0.25 of the gain so far"),
        (Scale(gain=-2.0, noise=0.1), "-0.5 against #3, 5 times the noise"),
        (Scale(gain=2.0, noise=0.1, seed=4), "-0.5 against #3, 0.25 of the gain so far, 5 times the noise"),
    ],
)
def test_a_difference_names_what_is_known(scale: Scale, text: str) -> None:
    assert scale.of(attempt(7, 1.0, against=3, delta=-0.5)) == text


def test_what_was_compared_with_nothing_has_no_difference() -> None:
    assert Scale(gain=1.0).of(attempt(7, 1.0, against=None, delta=None)) == ""
    assert Scale(gain=1.0).of(attempt(7, None, against=3, delta=0.5)) == ""


def test_a_difference_of_rounding_is_none() -> None:
    scale, fields = Scale(gain=1.0, noise=1e-9), {"against": 3, "delta": 1e-7}
    said = [scale.of(attempt(7, 1.0, verdict=verdict, **fields)) for verdict in (Verdict.TIED, Verdict.WORSE)]
    assert said == [
        "+1e-07 against #3, practically the same",
        "+1e-07 against #3, 1e-07 of the gain so far, 1e+02 times the noise",
    ]
    small = attempt(7, 4e-7, verdict=Verdict.TIED, against=3, delta=1e-7)
    assert Scale().of(small) == "+1e-07 against #3", "a quarter of the score, however small that is"
