"""Moves make new points out of tables, ranges and the points of others."""

import json
from dataclasses import replace
from random import Random

import pytest
from native_problems import problem

from coral.native.search.episode import LocalSearch
from coral.native.search.numeric.moves import (
    MoveContext,
    cross,
    perturb_all,
    redraw_few,
    redraw_rows,
    restart,
)

MINE = {"rows": [{"x": float(k), "y": 0.5} for k in range(6)]}
THEIRS = {"rows": [{"x": k + 0.25, "y": 7.5} for k in range(6)]}


@pytest.fixture
def context():
    task = problem(lambda data: 0.0, MINE)
    other = task.space.vector({"p.json": json.dumps(THEIRS)})
    return LocalSearch(task, task.space.start, [other], [], Random(1), gradients=True).context


def test_crossing_joins_parts_of_two_candidates(context):
    start, (other,) = context.space.start, context.others
    point = cross(context, start)
    taken = [k for k, value in enumerate(point) if value in other]
    assert 0 < len(taken) < len(point)
    assert all(value in other or value in start for value in point)


def test_without_others_of_the_same_form_crossing_begins_anywhere(context):
    alone = replace(context, others=[])
    assert cross(alone, context.space.start) != context.space.start


@pytest.mark.parametrize(
    ("move", "fewest", "most"), [(redraw_rows, 2, 4), (redraw_few, 1, 3), (perturb_all, 12, 12), (restart, 12, 12)]
)
def test_a_move_changes_as_many_values_as_it_says(context, move, fewest, most):
    start = context.space.start
    for _ in range(10):
        changed = sum(a != b for a, b in zip(move(context, start), start, strict=True))
        assert fewest <= changed <= most


def test_a_row_that_is_drawn_anew_leaves_its_place():
    """The best place for it is often where it was, and it would fall back there."""
    near = problem(lambda rows: sum(abs(x) + abs(y) for x, y in rows), [[float(k), float(k)] for k in range(4)])
    space = near.space
    for seed in range(30):
        moves = MoveContext(near, space.ranges([space.start]), space.scales([space.start]), [], Random(seed))
        point = redraw_rows(moves, space.start)
        changed = [k for k in range(len(point)) if point[k] != space.start[k]]
        assert changed
        assert max(abs(point[k] - space.start[k]) for k in changed) > 0.1 * moves.scales[changed[0]]
