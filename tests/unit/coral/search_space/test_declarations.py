"""What a task declares of its variables, and what is recognised without being declared."""

from math import inf
from random import Random

import pytest

from coral.native.search.numeric.discrete import Neighbourhood
from coral.search_space.declarations import read_declarations
from coral.search_space.space import SearchSpace
from coral.search_space.variables import VariableKind


def space(text, declared=None, name="p.yaml"):
    return SearchSpace({name: text}, read_declarations(declared or {}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.yaml", "kernel: rbf\nsize: 3\n"),
        ("p.json", '{"kernel": "rbf", "size": 3}'),
        ("p.py", "kernel = 'rbf'\nsize = 3\n"),
    ],
)
def test_a_word_is_a_choice_where_the_task_says_so(name, text):
    assert len(space(text, name=name)) == 1
    found = space(text, {"kernel": "rbf | laplace | poly"}, name)
    assert found.names[0] == "kernel"
    assert found.variables[0].choices == ("rbf", "laplace", "poly")
    assert found.texts([1.0, 3.0])[name] == text.replace("rbf", "laplace")
    assert found.vector({name: text.replace("rbf", "poly")}) == [2.0, 3.0]


def test_ranges_and_what_is_fixed():
    found = space("rate: 0.5\nseed: 7\n", {"rate": "0.001 .. 1", "seed": "fixed"})
    assert [(variable.low, variable.high) for variable in found.variables] == [(0.001, 1.0)]


def test_the_bounds_of_an_integer_are_integers_within_its_range():
    found = space("n: 3\nmixed: [1, 2.5]\n", {"n": "0.5 .. 10.9", "mixed": "0.5 .. 10.9"})
    assert [(variable.low, variable.high) for variable in found.variables] == [(1, 10), (0.5, 10.9), (0.5, 10.9)]
    assert found.clip([0, 0, 20]) == [1, 0.5, 10.9]


def test_each_element_of_a_list_and_each_letter_of_a_text():
    words = space('layers: [relu, tanh, relu]\nbits: "01101"\n', {"layers": "relu | tanh", "bits": "0 | 1"})
    assert words.start == [0, 1, 0, 0, 1, 1, 0, 1]
    assert words.texts([1, 1, 1, 1, 1, 1, 1, 1]) == {"p.yaml": 'layers: [tanh, tanh, tanh]\nbits: "11111"\n'}


def test_a_declared_permutation_stays_one():
    found = space('{"order": [3, 1, 2], "n": 4}', {"order": "permutation"}, "p.json")
    assert found.permutations == [[0, 1, 2]]
    assert sorted(found.clip([2.7, 2.9, 2.8, 9.0])[:3]) == [1, 2, 3]
    assert found.clip([2.7, 2.9, 2.8, 9.0]) == [1, 3, 2, 9]


def test_a_permutation_beside_a_real_on_its_line_stays_one():
    found = space("solve([3, 1, 2], order=[2, 0, 1], rate=0.5)\n", {"order": "permutation"}, "p.py")
    assert (found.permutations, found.reals) == ([[3, 4, 5]], [0, 1, 2, 6])


def test_a_range_may_be_open_at_one_end():
    found = space("n = 3  # range: 0 .. inf\nrate = 0.5\n", {"rate": "-inf .. 1"})
    assert [(variable.low, variable.high) for variable in found.variables] == [(0, inf), (-inf, 1)]


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("order: 5\nn: 4\n", {"order": "permutation"}),
        ("order: [5]\nn: 4\n", {"order": "permutation"}),
        ("order: {a: 5, b: 6}\nn: 4\n", {"order": "permutation", "b": "fixed"}),
    ],
)
def test_what_is_alone_in_its_permutation_stays_as_it_is(text, declared):
    found = space(text, declared)
    assert (found.start, found.permutations) == ([4], [])
    neighbours = Neighbourhood(found, Random(1))
    assert {k for _ in range(20) for k, _ in neighbours.draw(found.start)} == {0}


def test_bits_and_permutations_are_recognised():
    bits = space('{"sequence": [1, -1, 1, 1, -1, 1, 1, 1]}', name="p.json")
    assert {variable.choices for variable in bits.variables} == {("-1", "1")}
    assert bits.vector({"p.json": '{"sequence": [1, 1, 1, 1, 1, 1, 1, 1]}'}) == [1.0] * 8
    order = space('{"order": [7, 6, 5, 4, 3, 2, 1, 0]}', name="p.json")
    assert order.permutations == [list(range(8))]


@pytest.mark.parametrize(
    "values", ["1, 0, 1", "0, 1, 2, 3, 4, 5, 6, 6", "0, 1, 0, 1, 0, 1, 0, 2", "5, 6, 7, 8, 9, 4, 3, 2"]
)
def test_other_integers_stay_integers(values):
    found = space(f'{{"counts": [{values}]}}', name="p.json")
    assert {variable.kind for variable in found.variables} == {VariableKind.INTEGER}
    assert not found.permutations


@pytest.mark.parametrize("wrong", [[], {"a": "x"}, {"a": "x | x"}, {"a": "2 .. 1"}, {"a": "0 .. nan"}, {"a": "| x"}])
def test_a_declaration_that_says_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="variable"):
        read_declarations(wrong)
