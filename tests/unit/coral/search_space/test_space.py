"""Vectors to texts and back: what is not varied stays as it was, byte for byte."""

import json
import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, strategies as st

from coral.search_space.space import EditableFile, SearchSpace


def test_what_is_not_varied_keeps_its_characters():
    text = '{ "a": 1.50,\n\t"b":2.0e0 , "c": [ 3,4 ]}\r\n'
    file = EditableFile("a.json", text)
    values = [variable.value for variable in file.variables]
    assert file.text(values) == text
    values[1] = 0.1
    assert file.text(values) == text.replace("2.0e0", "0.1")
    values[1] = 2.0
    assert file.text(values) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(-0.0)
def test_a_real_reads_back_as_it_was_written(value):
    file = EditableFile("a.json", '{"x": 0.5}')
    assert json.loads(file.text([value]))["x"] == value
    if math.isfinite(value):
        assert file.values(file.text([value])) == [value]


@given(
    st.text(alphabet="{}[]\",:0123456789.eE+-truefalsn \n#_x'()", max_size=80), st.sampled_from(["json", "py", "txt"])
)
def test_no_text_is_an_error_and_none_is_changed_by_reading(text, suffix):
    file = EditableFile(f"a.{suffix}", text)
    assert file.text([variable.value for variable in file.variables]) == text
    assert [variable.start for variable in file.variables] == sorted(variable.start for variable in file.variables)


def test_a_point_is_read_from_another_version_of_the_same_form():
    space = SearchSpace({"a.json": '{"x": 1.5, "n": 2}', "b.cfg": "k = 3.5\n"})
    assert len(space) == 3
    assert space.vector({"a.json": '{"x": 7.25, "n": -4}', "b.cfg": "k = 0.5\n", "c": "?"}) == [7.25, -4, 0.5]
    assert space.vector({"a.json": '{"y": 7.25, "n": -4}', "b.cfg": "k = 0.5\n"}) is None
    assert space.vector({"a.json": '{"x": 7.25, "n": -4}'}) is None
    assert space.texts([7.25, 2.0, 0.5]) == {"a.json": '{"x": 7.25, "n": 2}', "b.cfg": "k = 0.5\n"}


def test_clipping_respects_kinds_and_bounds():
    space = SearchSpace({"a.cfg": "a = 0.5 # range: 0..1\nb = 3\nm = x # choices: x, y\n"})
    assert space.clip([7.0, 2.4, 9.0]) == [1.0, 2.0, 1.0]
    assert space.clip([-7.0, 2.6, -9.0]) == [0.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("bounds", "usual", "declared", "scale"),
    [
        ("-5..5", (-5.0, 5.0), (-5.0, 5.0), 10.0),
        ("0..1000", (0.25, 0.75), (0.0, 1000.0), 1000.0),
        ("0.001..1000", (0.25, 0.75), (0.001, 1000.0), 0.5),  # of a rate, the width is no measure
    ],
)
def test_declared_bounds_are_the_range_if_they_are_not_wide_or_where_they_are_to_be(bounds, usual, declared, scale):
    space = SearchSpace({"a.cfg": f"a = 0.5 # range: {bounds}\nb = 3.5\n"})
    assert {space.takes_declared(Random(seed)) for seed in range(20)} == {False, True}
    assert space.ranges([space.start]) == [usual, (1.75, 5.25)]
    assert space.ranges([space.start], declared=True) == [declared, (1.75, 5.25)]
    assert space.scales([space.start]) == [0.5, 3.5]
    assert space.scales([space.start], declared=True) == [scale, 3.5]


def test_a_bound_on_one_side_is_no_range():
    space = SearchSpace({"a.cfg": "a = 0.5\n"})
    space.variables[0] = replace(space.variables[0], low=0.0)
    assert not any(space.takes_declared(Random(seed)) for seed in range(20))
    assert space.ranges([space.start], declared=True) == [(0.25, 0.75)]


def test_tables_and_their_scales():
    rows = ",\n".join(f'{{"x": {k / 10}, "r": 0.07}}' for k in range(1, 5))
    space = SearchSpace({"t.json": f'{{"rows": [{rows}], "lone": 5.0}}'})
    assert [len(table) for table in space.tables] == [4]
    scales = space.scales([space.start])
    assert scales[0] == pytest.approx(0.3)
    assert scales[1] == pytest.approx(0.07)
    assert scales[-1] == 5.0


def test_a_change_is_described_by_its_largest_differences():
    space = SearchSpace({"a.cfg": "a = 1.5\nm = x # choices: x, y\n"})
    assert space.describe_change([1.5, 0.0], [1.5, 0.0]) == "nothing differs"
    assert space.describe_change([1.5, 0.0], [1.500000001, 0.0]).endswith("line 1 1.5 -> 1.500000001")
    assert space.describe_change([1.5, 0.0], [1.75, 1.0]) == (
        "2 of 2 values differ; most of all line 2 x -> y; line 1 1.5 -> 1.75"
    )
