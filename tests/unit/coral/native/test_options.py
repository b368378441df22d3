"""The options of the native agent: unknown and wrong ones are refused."""

import pytest

from coral.native.options import Options


@pytest.mark.parametrize(
    "wrong", [[], {"seconds": 0}, {"seconds": "5"}, {"seconds": True}, {"steps": float("nan")}, {"brain": 3}, {"x": 1}]
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError):
        Options.read(wrong)


def test_options_that_are_not_given_have_defaults():
    assert Options.read({"seconds": 2}) == Options(seconds=2)
