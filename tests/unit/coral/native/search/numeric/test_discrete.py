"""Discrete search: bits, permutations and integers, to optima that a descent by single steps misses."""

import time
import tracemalloc
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from native_problems import problem

from coral.native.search.numeric import discrete
from coral.native.search.numeric.discrete import (
    MOST_NEIGHBOURS,
    Neighbourhood,
    anneal,
    sample_neighbours,
    search_by_tabu,
)
from coral.search_space.space import changed


def energy(data):
    """Of the autocorrelations of a sequence of 13: the least is 6, by a Barker sequence."""
    values = data["sequence"]
    return sum(sum(a * b for a, b in zip(values, values[k:], strict=False)) ** 2 for k in range(1, len(values)))


def tour(data):
    """The way around a circle of 12 places, in this order: 12 is the least, with every neighbour next to it."""
    order = data["order"]
    assert sorted(order) == list(range(12))
    return sum(min((a - b) % 12, (b - a) % 12) for a, b in pairwise([*order, order[0]]))


def on_a_clock(function, monkeypatch, takes):
    """The function, a measurement of which takes so many seconds of a clock that nothing else moves."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def measured(data):
        now[0] += takes
        return function(data)

    return measured


def searches(task, seed):
    random, start = Random(seed), task.measured(task.space.start)
    return (
        lambda: search_by_tabu(task, start, random),
        lambda: anneal(task, start, random, 0.3),
    )


@pytest.mark.parametrize("which", [0, 1])
def test_the_best_sequence_is_found(which, monkeypatch):
    task = problem(on_a_clock(energy, monkeypatch, 3e-5), {"sequence": [1, -1, 1, 1, 1, 1, 1, -1, 1, -1, -1, 1, 1]})
    assert any(searches(task, seed)[which]().measurement.score == 6 for seed in range(12))


@pytest.mark.parametrize("which", [0, 1])
def test_the_shortest_tour_is_found(which, monkeypatch):
    task = problem(on_a_clock(tour, monkeypatch, 3e-5), {"order": [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]})
    assert any(searches(task, seed)[which]().measurement.score == 12 for seed in range(12))


FLOW = [[Random(12 * i + j).random() for j in range(12)] for i in range(12)]


def transport(data):
    """How far goods travel between machines on a circle: an exchange leaves all but two machines where they are."""
    at = data["order"]
    return sum(FLOW[i][j] * min((at[i] - at[j]) % 12, (at[j] - at[i]) % 12) for i in range(12) for j in range(12))


def disorder(data):
    """How many pairs are in the wrong order. A move across `d` others disorders `d`, an exchange twice as many."""
    return sum(a > b for a, b in combinations(data["order"], 2))


@pytest.mark.parametrize(
    ("score", "order", "kind"),
    [(transport, [3, 8, 0, 11, 5, 2, 9, 1, 10, 6, 4, 7], "exchange"), (disorder, range(12), "move")],
)
def test_annealing_changes_permutations_in_the_way_that_changes_the_score_least(score, order, kind):
    task = problem(score, {"order": list(order)})
    start = task.measured(task.space.start)
    chosen = [sample_neighbours(task, start, Random(seed))[0].kind for seed in range(20)]
    assert chosen.count(kind) > 12


def test_neighbours_of_a_permutation_are_permutations():
    space = problem(lambda _: 0.0, {"order": [3, 1, 2, 0, 5, 4, 7, 6], "n": 3}).space
    start = space.start
    neighbours = Neighbourhood(space, Random(1))
    everything = [changed(start, change) for change in neighbours.all(start)]
    assert len(everything) == 8 * 7 // 2 + 2
    for kind in ("exchange", "reverse", "move"):
        one_kind = replace(neighbours, kind=kind)
        everything += [changed(start, one_kind.draw(start)) for _ in range(50)]
    assert all(sorted(point[:8]) == list(range(8)) for point in everything)
    assert all(sum(a != b for a, b in zip(start, point, strict=True)) for point in everything if point[8] == 3)


def test_of_the_exchanges_of_permutations_each_is_drawn_without_making_the_others():
    space = problem(lambda _: 0.0, {"one": list(range(8)), "two": list(range(9))}).space
    pairs = [(i, j) for group in (range(8), range(8, 17)) for i, j in combinations(group, 2)]
    everything = Neighbourhood(space, Random(1)).all(space.start)
    assert len(everything) == len(pairs)
    assert {tuple(sorted(change)) for change in everything} == {
        ((i, space.start[j]), (j, space.start[i])) for i, j in pairs
    }
    large = problem(lambda _: 0.0, {"order": list(range(1000))}).space
    tracemalloc.start()
    drawn = Neighbourhood(large, Random(1)).all(large.start)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(set(drawn)) == MOST_NEIGHBOURS
    assert peak < 2_000_000


@pytest.mark.parametrize(("takes", "fewest"), [(1e-4, 3000), (0.1, 40)])
def test_an_annealing_has_cooled_down_when_its_time_is_over(monkeypatch, takes, fewest):
    """However many of its measurements are of neighbours that are not used."""
    order = [(7 * k) % 40 for k in range(40)]
    function = on_a_clock(lambda data: sum(k * value for k, value in enumerate(data["order"])), monkeypatch, takes)
    task = problem(function, {"order": order})
    task.seconds, began = 5.0, time.monotonic()
    task.deadline = began + 5.0
    start = task.measured(task.space.start)
    for seed in range(5):
        left, before = task.deadline - time.monotonic(), task.evaluations
        anneal(task, start, Random(seed), left)
        assert task.evaluations - before >= min(fewest, 0.3 * left / takes)
        if time.monotonic() > began + 4.0:
            break
    assert time.monotonic() < began + 5.01


COUPLED = [[Random(40 * min(i, j) + max(i, j)).gauss(0, 1) for j in range(40)] for i in range(40)]


def unrest(data):
    """The energy of 40 coupled spins, which has many optima far from each other."""
    spins = [2 * bit - 1 for bit in data["bits"]]
    return sum(COUPLED[i][j] * spins[i] * spins[j] for i in range(40) for j in range(i)) - 0.1 * sum(spins)


@pytest.fixture
def walked(monkeypatch):
    """A function that anneals the coupled spins from given bits, and returns how far each of ten walks has led."""
    points = []

    def measured(data):
        points.append(data["bits"])
        return unrest(data)

    function = on_a_clock(measured, monkeypatch, 1e-3)

    def anneal_from(bits):
        task, farthest = problem(function, {"bits": bits}), []
        task.seconds = 1.5
        start = task.measured(task.space.start)
        for seed in range(10):
            points.clear()
            anneal(task, start, Random(seed), 1.5)
            farthest.append(max(sum(a != b for a, b in zip(point, bits, strict=True)) for point in points))
        return farthest

    return anneal_from


ANYWHERE = Random(5).choices((0, 1), k=40)


def optimum():
    task = problem(unrest, {"bits": ANYWHERE})
    return [int(bit) for bit in search_by_tabu(task, task.measured(task.space.start), Random(1)).point]


def test_an_annealing_keeps_most_of_an_optimum(walked):
    """In most cases, because some annealings from an optimum are as hot as those from elsewhere."""
    farthest = walked(optimum())
    assert sum(differing <= 5 for differing in farthest) > 5
    assert min(walked(ANYWHERE)) > 10


def test_an_annealing_that_does_not_begin_near_an_optimum_begins_hot(walked, monkeypatch):
    before = walked(ANYWHERE), walked(optimum())
    monkeypatch.setattr(discrete, "REHEATS", (1e-9,))
    assert walked(ANYWHERE) == before[0]
    assert walked(optimum()) == [1] * 10


def test_most_neighbours_of_a_bit_are_bits():
    space = problem(lambda _: 0.0, {"bits": [0] * 40}).space
    neighbours = Neighbourhood(space, Random(3))
    drawn = [neighbours.draw(space.start)[0][1] for _ in range(400)]
    assert drawn.count(1.0) > 240


def test_a_neighbour_at_a_bound_differs():
    space = problem(lambda _: 0.0, {"n": 3}).space
    space.variables[0] = replace(space.variables[0], low=3.0, high=5.0)
    neighbours = Neighbourhood(space, Random(1))
    assert {neighbours.draw([3.0])[0][1] for _ in range(100)} <= {4.0, 5.0}


def test_colours_change_to_other_colours():
    """From 0 to 2 without 1 in between, of which the check may reject every one."""
    space = problem(lambda _: 0.0, {"colours": [0, 2, 4, 0, 2]}).space
    neighbours = Neighbourhood(space, Random(1))
    assert ((0, 4.0),) in neighbours.all(space.start)
    assert ((0, 4.0),) in [neighbours.draw(space.start) for _ in range(200)]


def test_amounts_and_single_integers_have_no_codes():
    assert not any(problem(lambda _: 0.0, {"amounts": [3 * k for k in range(40)], "one": 3}).space.codes)


def test_an_annealing_that_begins_at_an_error_does_not_walk_among_errors(monkeypatch):
    """It tries one change after the other, for none is better than another."""
    measured = list[list[int]]()

    def rejected(data):
        measured.append([*data.values()])
        raise ValueError

    task = problem(on_a_clock(rejected, monkeypatch, 1e-3), {"a": 3, "b": 40, "c": 7})
    anneal(task, task.measured(task.space.start), Random(1), 0.5)
    assert len(measured) > 100
    assert max(sum(a != b for a, b in zip(tried, measured[0], strict=True)) for tried in measured) == 1


def test_a_kind_whose_candidates_are_rejected_is_not_the_gentlest():
    """Hardly any exchange is allowed, and those change the score least. Every move is."""

    def nearly_sorted(data):
        order = data["order"]
        if sum(a > b for a, b in pairwise(order)) > 1:
            raise ValueError
        return sum(abs(k - value) for k, value in enumerate(order))

    task = problem(nearly_sorted, {"order": list(range(30))})
    start = task.measured(task.space.start)
    assert {sample_neighbours(task, start, Random(seed))[0].kind for seed in range(10)} == {"move"}


def heaviest(data):
    """Three of ten weights are to be chosen, no more and no less."""
    if sum(data["take"]) != 3:
        raise ValueError("not three")
    return -sum(weight for weight, taken in zip((3, 9, 1, 7, 2, 8, 6, 4, 5, 0), data["take"], strict=True) if taken)


@pytest.mark.parametrize("which", [0, 1])
def test_where_the_check_rejects_single_changes_two_values_are_exchanged(which, monkeypatch):
    task = problem(on_a_clock(heaviest, monkeypatch, 1e-4), {"take": [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]})
    assert searches(task, 1)[which]().measurement.score == -24
