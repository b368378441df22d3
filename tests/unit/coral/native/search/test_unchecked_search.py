"""Search without a public check: every family proposes a candidate, and small steps get somewhere."""

import json
from dataclasses import replace
from random import Random

import pytest
from native_situations import trial

from attempts.record import Direction
from coral.native.search.families import FAMILIES
from coral.native.search.unchecked_search import FIRST_STEP, next_step, propose
from coral.search_space.space import SearchSpace


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.move])
def test_each_family_proposes_a_candidate(family):
    space = SearchSpace({"p.json": json.dumps({"rows": [{"x": 0.1 * k, "n": k, "on": True} for k in range(1, 5)]})})
    point = propose(space, [space.start], family, 0.2, None, Random(4))
    assert point != space.start
    assert space.vector(space.texts(point)) == point


@pytest.mark.parametrize(
    "texts", [{"p.cfg": "kind = a # choices: a, b\n"}, {"p.cfg": "n = 3 # range: 3..4\n"}, {"p.json": '{"on": true}'}]
)
def test_a_small_step_is_never_none(texts):
    space = SearchSpace(texts)
    assert all(propose(space, [], "descent", 0.2, None, Random(k)) != space.start for k in range(40))


def test_the_opposite_of_what_failed_is_tried():
    space = SearchSpace({"p.json": "[1.5, 2.5]"})
    assert propose(space, [], "shake", 0.2, [1.0, 4.0], Random(1)) == [2.0, 1.0]


def step_after(step: float, score: float, **fields) -> float:
    made = replace(trial(2, "shake", 1.0, score), step=step, **fields)
    return next_step([made, replace(made, family="jump", step=9.0)], "shake", 1, Direction.MINIMIZE)[0]


def test_steps_grow_on_success_and_shrink_on_none():
    assert step_after(0.2, 0.5) > 0.2 > step_after(0.2, 1.5)
    assert step_after(0.05, 0.5, verdict="void") == FIRST_STEP
    assert step_after(0.0, 0.5) == FIRST_STEP  # it was made with a check


def test_small_steps_get_somewhere():
    """Two hundred attempts, each the only measurement: what a fleet without a public check does."""
    space, random = SearchSpace({"p.json": "[3.5, -2.5, 1.5]"}), Random(5)
    best, step, failed = space.start, FIRST_STEP, None

    def cost(point):
        return sum(value * value for value in point)

    for _ in range(200):
        point = propose(SearchSpace(space.texts(best)), [], "shake", step, failed, random)
        better = cost(point) < cost(best)
        step = step_after(step, 0.5 if better else 1.5)
        failed = None if better or failed is not None else point
        best = point if better else best
    assert cost(best) < 0.01 * cost(space.start)
