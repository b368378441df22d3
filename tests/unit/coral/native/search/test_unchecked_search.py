"""Search without a public check: every family proposes a candidate, and small steps get somewhere."""

import json
from random import Random

import pytest

from coral.native.search.families import FAMILIES
from coral.native.search.numeric.space import SearchSpace
from coral.native.search.unchecked_search import FIRST_STEP, next_step, propose


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.move])
def test_each_family_proposes_a_candidate(family):
    space = SearchSpace({"p.json": json.dumps({"rows": [{"x": 0.1 * k, "n": k, "on": True} for k in range(1, 5)]})})
    point = propose(space, space.start, [space.start], family, 0.2, None, Random(4))
    assert point != space.start
    assert space.vector(space.texts(point)) == point


def test_the_opposite_of_what_failed_is_tried():
    space = SearchSpace({"p.json": "[1.5, 2.5]"})
    assert propose(space, [1.5, 2.5], [], "shake", 0.2, [1.0, 4.0], Random(1)) == [2.0, 1.0]


def test_steps_grow_on_success_and_shrink_on_none():
    assert next_step(0.2, improved=True) > 0.2 > next_step(0.2, improved=False)


def test_small_steps_get_somewhere():
    """Two hundred attempts, each the only measurement: what a fleet without a public check does."""
    space, random = SearchSpace({"p.json": "[3.5, -2.5, 1.5]"}), Random(5)
    best, step, failed = space.start, FIRST_STEP, None

    def cost(point):
        return sum(value * value for value in point)

    for _ in range(200):
        point = propose(space, best, [], "shake", step, failed, random)
        better = cost(point) < cost(best)
        step = next_step(step, better)
        failed = None if better or failed is not None else point
        best = point if better else best
    assert cost(best) < 0.01 * cost(space.start)
