"""JSON is made and parsed as by the module json."""

import json
import math

import pytest
from hypothesis import given, strategies as st

from coral.cluster import light_json

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_it_makes_and_parses_what_json_does(value: object) -> None:
    assert light_json.dumps(value) == json.dumps(value)
    assert light_json.loads(json.dumps(value, indent=1)) == value


def test_numbers_that_json_has_not_are_those_of_python() -> None:
    found = light_json.loads(light_json.dumps([math.inf, -math.inf, math.nan]))
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])


@pytest.mark.parametrize("text", ["", "{", "[1] 2", "nonsense", '{"a" 1}', "[1,]"])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        light_json.loads(text)


def test_what_json_cannot_hold_is_converted_or_refused() -> None:
    assert light_json.dumps({"a": {1}}, default=sorted) == '{"a": [1]}'
    with pytest.raises(TypeError, match="set is no JSON"):
        light_json.dumps({1})
