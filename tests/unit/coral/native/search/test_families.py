"""Which families can do something with given files."""

import json

from coral.native.search.families import suitable_families
from coral.search_space.space import SearchSpace


def test_only_families_that_suit_the_files_are_offered():
    scalar = SearchSpace({"p.json": "0.5"})
    table = SearchSpace({"p.json": json.dumps({"rows": [{"x": 0.1, "y": 0.2}] * 3})})
    words = SearchSpace({"p.cfg": "kind = a # choices: a, b\n"})
    assert "rows" not in suitable_families(scalar, others=False, check=True)
    assert {"rows", "cross"} <= set(suitable_families(table, others=True, check=True))
    assert "cross" not in suitable_families(table, others=False, check=True)
    assert "descent" not in suitable_families(table, others=False, check=False)
    assert "descent" not in suitable_families(words, others=False, check=True)
    bits = SearchSpace({"p.json": "[0, 1, 1, 0, 1, 0, 0, 1]"})
    assert suitable_families(bits, others=True, check=True) == ["tabu", "anneal"]
    assert {"shake", "jump", "scatter"} <= set(suitable_families(bits, others=False, check=False))
