"""An episode of search ends in time, and always with a candidate; its local searches go over mixed variables."""

import math
import time
from itertools import pairwise
from random import Random

import pytest
from native_problems import EIGHT_POINTS, MeasuredLines, problem, repelling_points, rosenbrock

from coral.native.search import episode as episode_module
from coral.native.search.episode import LINE_PATIENCE, Episode
from coral.native.search.families import FAMILIES
from coral.native.search.local_search import LocalSearch
from coral.native.search.numeric import moves
from coral.native.search.numeric.evolution import Evolution
from coral.native.search.numeric.problem import CHUNK_SECONDS, OptimizationProblem
from coral.search_space.space import SearchSpace


@pytest.fixture
def clock(monkeypatch):
    """A clock that the check alone moves: how slow the machine is makes no difference."""
    now = [1000.0]
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now[0])
        yield now


def run_episode(clock, function, at, family, seconds, takes=2e-4, variables=None, **fields):
    """An episode on a function, a measurement of which takes so many seconds. `variables`: what the task declares."""

    def measured(x):
        clock[0] += takes
        return function(x)

    task = problem(measured, at, variables=variables)
    given = {
        "others": [],
        "random": Random(2),
        "report": lambda *_: None,
        "pause": lambda: 0.5,
        "longest": 2.4 * seconds,
        **fields,
    }
    episode = Episode(task, family=family, seconds=seconds, began=clock[0], **given)
    return episode, episode.run()


FOR_DISCRETE = ("tabu", "anneal")


@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if not family.others and name not in FOR_DISCRETE]
)
def test_every_family_brings_a_better_candidate(family, clock):
    reports = []

    def report(*reported):
        reports.append(reported)

    episode, found = run_episode(clock, repelling_points, EIGHT_POINTS, family, 0.3, report=report)
    assert found.point != episode.start.point
    assert found.measurement.feasible
    assert found.measurement.score < episode.start.measurement.score
    assert clock[0] - episode.began < 0.6
    assert all(0 <= share <= 1 for _, share in reports)


@pytest.mark.parametrize("family", FOR_DISCRETE)
def test_orders_are_searched_by_exchanges(family, clock):
    """The seed's order is the worst; each place has its own cost, so that only one order is best."""

    def cost(data):
        assert sorted(data["order"]) == list(range(10))
        return float(sum(place * value for place, value in enumerate(data["order"])))

    episode, found = run_episode(clock, cost, {"order": list(range(10))}, family, 0.5)
    assert found.measurement.score == 120.0
    assert clock[0] - episode.began < 0.8


def test_at_an_optimum_the_next_best_is_the_candidate(clock):
    """Else stagnation could not be seen: the same result again would look like an attempt that changed nothing."""

    def function(x):
        return sum(v * v - 3 * math.cos(5 * v) for v in x), [9 - v * v for v in x]

    _, found = run_episode(clock, function, [1e-9] * 3, "jump", 0.4, known=[[2.4, -1.3, 0.1]])
    assert found.measurement.feasible
    assert found.measurement.score > -9 + 1e-3


def test_an_episode_ends_in_time_however_slow_the_check_is(clock):
    episode, _ = run_episode(clock, rosenbrock, [-1.2, 1.0] * 20, "descent", 0.5, takes=0.02)
    assert episode.moves + episode.problem.evaluations > 2
    assert clock[0] - episode.began < 1


@pytest.mark.parametrize(
    ("at", "family", "spent"),
    [
        ([1e-9] * 3, "jump", 0.4),  # at the optimum already: there are no last digits to seek
        ({"order": list(range(10))}, "anneal", 0.4),  # only reals have last digits
        ([2.4, -1.3, 0.1], "jump", 0.32),
    ],
)
def test_time_that_the_last_digits_do_not_need_is_for_the_search(clock, monkeypatch, at, family, spent):
    def cost(x):
        values = x["order"] if isinstance(x, dict) else x
        return (
            sum(place * value for place, value in enumerate(values)) if isinstance(x, dict) else sum(v * v for v in x)
        )

    searched, candidate = [], Episode._candidate
    monkeypatch.setattr(
        Episode, "_candidate", lambda episode: searched.append(clock[0] - episode.began) or candidate(episode)
    )
    episode, _ = run_episode(clock, cost, at, family, 0.4)
    assert searched == [pytest.approx(spent, abs=0.02)]
    assert clock[0] - episode.began < 0.62


def bowl(x):
    return sum(v * v for v in x)


@pytest.mark.parametrize("family", FOR_DISCRETE)
@pytest.mark.parametrize("takes", [0.02, 0.1, 0.5, 1.5])
def test_a_slow_check_of_choices_yields_a_candidate(clock, family, takes):
    """Tabu search has 600 of 1225 neighbours to measure in a step, annealing begins with 60."""

    def cost(data):
        return float(sum((place - value) ** 2 for place, value in enumerate(data["order"])))

    order = [(7 * k) % 50 for k in range(50)]
    episode, found = run_episode(clock, cost, {"order": order}, family, 5.0, takes=takes)
    assert found.point != episode.start.point
    if takes < 1:
        assert found.measurement.score < episode.start.measurement.score
    assert clock[0] - episode.began < 5e-3 + max(5.0, 4.0 * takes) + max(takes, CHUNK_SECONDS)


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if not family.others])
@pytest.mark.parametrize("takes", [5.5, 20.0])
def test_a_check_that_is_slower_than_an_episode_yields_a_candidate(clock, family, takes):
    def cost(data):
        return float(sum(v * v for values in data["rows"] for v in values) + sum(data["bits"]))

    at = {"rows": [[0.5, 1.5], [2.5, 3.5], [4.5, 0.25]], "bits": [0, 1, 1, 0, 1, 0, 1, 1]}
    episode, found = run_episode(clock, cost, at, family, 5.0, takes=takes)
    assert found.point != episode.start.point
    assert clock[0] - episode.began <= 5.0 * takes


@pytest.mark.parametrize("family", [*FOR_DISCRETE, "compass", "scatter"])
def test_at_the_optimum_of_few_combinations_the_next_best_is_the_candidate(clock, family):
    """Of 24, all of which are measured many times."""
    words = {"a": "u | v | w | x", "b": "u | v | w", "c": "u | v"}
    weights = {"a": 1.0, "b": 10.0, "c": 100.0}

    def cost(data):
        return sum(weights[name] * "uvwx".index(word) for name, word in data.items())

    episode, found = run_episode(clock, cost, dict.fromkeys("abc", "u"), family, 0.4, variables=words)
    assert episode.start.measurement.score == 0.0
    assert found.measurement.score == 1.0


@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if not family.others and not family.discrete]
)
def test_from_a_start_that_the_check_rejects_a_valid_candidate_is_found(clock, family):
    def cost(data):
        if min(min(row) for row in data) < 0.5:
            raise ValueError("too small")
        return sum(x + y for x, y in data)

    episode, found = run_episode(clock, cost, [[0.1, 0.1]] * 3, family, 0.5)
    assert episode.start.measurement.error
    assert not found.measurement.error


@pytest.mark.parametrize("family", ["compass", "shake", "scatter", "evolution"])
def test_of_a_noisy_check_the_best_mean_is_the_candidate(clock, family):
    """The luckiest of 1,500 measurements is 1.6 better than its point."""
    noise = Random(3)
    _, found = run_episode(clock, lambda x: bowl(x) + noise.gauss(0.0, 0.5), [1.0] * 3, family, 0.3)
    assert found.measurement.score == pytest.approx(bowl(found.point), abs=0.45)


@pytest.mark.parametrize(
    "family", ["descent", *(pytest.param(name, marks=pytest.mark.slow) for name in ("shake", "scatter"))]
)
def test_a_noisy_check_is_searched_by_a_surrogate(clock, family):
    """A difference over a small step shows nothing but noise here: by those, a descent ends above 1."""
    noise = Random(3)
    _, found = run_episode(clock, lambda x: bowl(x) + noise.gauss(0.0, 0.5), [3.0] * 6, family, 2.0)
    assert bowl(found.point) < 0.1


def test_a_noisy_check_that_is_slow_is_searched_by_compass(clock):
    """With few measurements for each variable, a surrogate learns too little."""
    noise = Random(3)
    episode, found = run_episode(clock, lambda x: bowl(x) + noise.gauss(0.0, 0.1), [3.0] * 6, "shake", 5.0, takes=0.1)
    assert not episode.local.can_descend
    assert bowl(found.point) < bowl([3.0] * 6)


@pytest.mark.parametrize(("known", "measured"), [(None, 2), (False, 1)])
def test_a_check_that_is_not_noisy_costs_one_more_measurement_of_the_start(clock, known, measured):
    seen = []
    episode, _ = run_episode(clock, lambda x: seen.append(x) or bowl(x), [1.0] * 3, "evolution", 0.3, noisy=known)
    assert seen.count([1.0] * 3) == measured
    assert episode.noisy is False


def test_rounding_is_no_noise_and_a_rejected_start_shows_none(clock):
    rounding = Random(3)

    def cost(x):
        if x[0] < 0.0:
            raise ValueError("too small")
        return (1.0 + bowl(x)) * (1.0 + rounding.uniform(-1e-14, 1e-14))

    assert run_episode(clock, cost, [1.0] * 3, "shake", 0.1)[0].noisy is False
    assert run_episode(clock, cost, [-1.0] * 3, "shake", 0.1)[0].noisy is None


@pytest.mark.parametrize("family", ["shake", "evolution", "scatter"])
def test_of_a_check_that_takes_minutes_something_is_submitted(clock, family):
    episode, found = run_episode(clock, bowl, [1.0] * 3, family, 5.0, takes=400.0)
    assert found.point != episode.start.point


@pytest.mark.parametrize("takes", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("large", [True, False])
def test_a_slow_check_is_evolved_by_generations_that_an_episode_has_time_for(clock, large, takes):
    """Else no episode would end a generation of the largest population, which has 160 points."""
    options = {"takes": takes, "large_populations": large}
    episode, found = run_episode(clock, lambda x: rosenbrock(x), [0.5] * 10, "evolution", 5.0, **options)
    assert found.point != episode.start.point
    assert episode.evolution.strategy.countiter > 0


def test_rows_are_drawn_as_often_as_an_episode_has_time_for(clock):
    _, found = run_episode(clock, repelling_points, EIGHT_POINTS, "rows", 5.0, takes=0.3)
    assert found.point != [value for row in EIGHT_POINTS["rows"] for value in row.values()]


@pytest.mark.parametrize("family", ["descent", "shake"])
def test_where_the_first_gradient_would_outlast_an_episode_it_gains_without_gradients(clock, family):
    episode, found = run_episode(clock, bowl, [1.0] * 100, family, 5.0, takes=0.05)
    assert episode.local.differences is None
    assert found.measurement.score < episode.start.measurement.score


@pytest.mark.parametrize(
    ("takes", "constrained", "gradients"), [(0.1, False, True), (0.15, False, False), (0.1, True, False)]
)
def test_gradients_are_used_where_an_episode_has_time_for_enough_of_them(clock, takes, constrained, gradients):
    """Of ten variables: with constraints more steps are needed."""
    slack = [1.0] if constrained else []
    episode, _ = run_episode(clock, lambda x: (bowl(x), slack), [1.0] * 10, "descent", 5.0, takes=takes)
    assert (episode.local.differences is not None) is gradients


@pytest.mark.slow
def test_one_measurement_that_had_to_wait_does_not_make_a_check_slow(clock):
    waits = iter([0.09])

    def delayed(x):
        clock[0] += next(waits, 0.0)
        return bowl(x)

    episode, found = run_episode(clock, delayed, [1.0] * 57, "descent", 5.0, takes=1e-4)
    assert episode.local.differences is not None
    assert found.measurement.score < 1e-9


def local_search(task: OptimizationProblem) -> LocalSearch:
    return LocalSearch(task, task.space.start, [], [], Random(1), gradients=True)


def test_reals_and_choices_are_searched_by_turns():
    space = SearchSpace({"p.cfg": "kind = a # choices: a, b\nx = 9.5\n"})
    task = OptimizationProblem(space, MeasuredLines(lambda kind, x: (float(x) - 2) ** 2 + 5 * (kind == "a")), False)
    found = local_search(task).optimize(task.measured(space.start), target=None)
    assert found.point[0] == 1.0
    assert found.measurement.score < 1e-6


def test_a_point_that_cannot_be_measured_is_returned_as_it_is():
    task = problem(lambda x: 1 / x[0], [0.0])
    start = task.measured(task.space.start)
    assert local_search(task).optimize(start, target=None) is start
    assert local_search(task).polish(start) is start


def test_the_last_digits_are_found_without_constraints_too():
    """While exploring, a descent ends where it gains a millionth."""
    task = problem(lambda x: 240 + 1e-4 * sum(k * (v - 1) ** 2 for k, v in enumerate(x, 1)), [1.5] * 6)
    polished = local_search(task).polish(task.measured(task.space.start))
    assert polished.measurement.score < 240 + 1e-9


def pairs_energy(rows):
    """Points on a line that repel each other, each held near the place of its number."""
    points = [x for (x,) in rows]
    held = sum((x - k) ** 2 for k, x in enumerate(points))
    return held + sum(0.01 / (0.01 + abs(a - b)) for k, a in enumerate(points) for b in points[:k])


def test_a_row_that_was_moved_is_optimized_alone_first():
    at = [[float(k)] for k in range(12)]
    task = problem(pairs_energy, at)
    local = local_search(task)
    start = local.optimize(task.measured(task.space.start), None)
    moved = task.measured([*start.point[:3], 9.0, *start.point[4:]])
    before = task.evaluations
    settled = local.settle(moved, start.point)
    spent = task.evaluations - before
    assert settled.point[:3] == start.point[:3]
    assert settled.point[4:] == start.point[4:]
    assert abs(settled.point[3] - start.point[3]) < 0.01
    before = task.evaluations
    local.optimize(moved, None)
    assert spent < (task.evaluations - before) / 3


def test_what_is_bound_by_constraints_or_moved_as_a_whole_is_not_optimized_by_parts():
    at = [[float(k)] for k in range(12)]
    task = problem(pairs_energy, at)
    local = local_search(task)
    everywhere = task.measured([x + 1.0 for x in task.space.start])
    assert local.settle(everywhere, task.space.start) is everywhere
    task = problem(lambda rows: (pairs_energy(rows), [x + 1.0 for (x,) in rows]), at)
    local = local_search(task)
    moved = task.measured([9.0, *task.space.start[1:]])
    assert local.settle(moved, task.space.start) is moved


def test_a_descent_without_constraints_goes_on_where_a_step_gains_little():
    """In this curved valley, less than a millionth of the cost."""
    task = problem(lambda x: 1000 + 0.01 * rosenbrock(x), [-1.2, 1.0] * 5)
    assert local_search(task).descend(task.measured(task.space.start)).measurement.score < 1000.001


def test_a_search_that_would_have_to_gain_more_than_any_has_is_left_out():
    task = problem(pairs_energy, [[float(k)] for k in range(12)])
    local = local_search(task)
    for k in range(8):
        local.optimize(task.measured([x + 0.01 * k for x in task.space.start]), None)
    here = task.measured([x + 0.01 for x in task.space.start])
    before = task.evaluations
    assert local.optimize(here, target=here.measurement.score - 100.0) is here
    assert task.evaluations == before
    assert local.optimize(here, target=here.measurement.score).measurement.score < here.measurement.score


def test_half_of_a_fleet_evolves_large_populations_after_the_first_run(clock):
    def population(large, evolution=None, seconds=0.2):
        fields = {"large_populations": large, "evolution": evolution}
        episode, _ = run_episode(clock, lambda x: rosenbrock(x), [0.5] * 6, "evolution", seconds, **fields)
        return episode.evolution.strategy.popsize

    def after_one(large):
        return Evolution(range(6), [0.5] * 6, [1.0] * 6, large, evaluations={0: 100})

    assert population(True, seconds=0.03) == population(False, seconds=0.03) == 9
    assert population(True, after_one(large=True)) >= 8 * population(False, after_one(large=False))


def test_what_is_found_by_a_move_that_is_cut_off_is_kept(clock):
    def cost(data):
        return float(sum(place * value for place, value in enumerate(data["order"])))

    episode, found = run_episode(clock, cost, {"order": list(range(30))}, "tabu", 0.2)
    assert episode.moves == 0
    assert found.measurement.score < episode.start.measurement.score


def hills(x):
    """Many optima, of which the next one is hardly ever the best."""
    return sum(0.05 * v * v - math.cos(3 * v) for v in x)


def test_a_line_begins_anywhere_and_goes_on_from_the_best_of_its_optima(clock):
    at = [6.2, -6.2, 4.1, 8.3]
    episode, _ = run_episode(clock, hills, at, "scatter", 0.3)
    assert all(abs(a - b) > 0.5 for a, b in zip(episode.optima[0].point, at, strict=True))
    line = episode.optima[: LINE_PATIENCE + 1]
    scores = [hills(optimum.point) for optimum in line]
    assert len(scores) == LINE_PATIENCE + 1
    assert scores == sorted(scores, reverse=True)


def test_a_line_is_given_up_once_it_gains_nothing(clock, monkeypatch):
    begun, hops, restart, hop = [], [], moves.restart, Episode._optimum_after
    monkeypatch.setattr(episode_module, "restart", lambda *given: begun.append(len(hops)) or restart(*given))
    monkeypatch.setattr(Episode, "_optimum_after", lambda *given: hops.append(1) or hop(*given))
    run_episode(clock, bowl, [1.0, 2.0], "scatter", 0.5)
    assert len(begun) > 2
    assert all(later - earlier == LINE_PATIENCE for earlier, later in pairwise(begun))


def test_a_line_that_the_check_rejects_is_no_candidate(clock):
    def near(x):
        if any(abs(v - 1.0) > 0.3 for v in x):
            raise ValueError("apart")
        return bowl(x)

    episode, found = run_episode(clock, near, [1.0] * 4, "scatter", 0.3)
    assert all(optimum.measurement.feasible for optimum in episode.optima)
    assert found.measurement.feasible
    assert episode.best.measurement.feasible


def test_a_line_replaces_the_best_that_is_kept_only_by_a_better_one(clock):
    def measured(x):
        clock[0] += 2e-4
        return hills(x)

    task, kept = problem(measured, [0.02, 0.01, 0.0, 2.1]), []
    task.on_new_best = lambda found: kept.append(found.measurement.score)
    episode = Episode(
        task,
        family="scatter",
        others=[],
        seconds=0.3,
        longest=0.3,
        began=clock[0],
        random=Random(2),
        report=lambda *_: None,
        pause=lambda: 0.5,
    )
    episode.run()
    assert episode.moves > LINE_PATIENCE
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize(
    ("family", "constrained", "seconds"), [("descent", False, 1.2), ("descent", True, 0.5), ("evolution", False, 0.5)]
)
def test_where_a_descent_takes_longer_than_an_episode_the_episode_is_longer(clock, family, constrained, seconds):
    slack = [100.0] if constrained else []
    episode, _ = run_episode(clock, lambda x: (rosenbrock(x), slack), [-1.2, 1.0] * 20, family, 0.5)
    assert episode.seconds == pytest.approx(seconds)
    assert clock[0] - episode.began < seconds + 0.4


def test_an_evolution_knows_what_other_agents_have_reached(clock):
    episode, _ = run_episode(clock, bowl, [9.0] * 6, "evolution", 0.05, others=[[0.1] * 6, [5.0] * 6])
    assert episode.evolution.record <= bowl([0.1] * 6)
    slow, _ = run_episode(clock, bowl, [9.0] * 6, "evolution", 0.05, takes=0.01, others=[[0.1] * 6])
    assert slow.evolution.record > bowl([0.1] * 6)


def test_what_another_agent_has_reached_is_not_submitted_again(clock):
    """In an evolution that has no time to reach anything itself."""
    start, other = ([0.99495863764] * bumps + [0.0] * (20 - bumps) for bumps in (3, 1))

    def rastrigin(x):
        return sum(10.0 + value**2 - 10.0 * math.cos(2.0 * math.pi * value) for value in x)

    _, found = run_episode(clock, rastrigin, start, "evolution", 5.0, takes=0.02, others=[other])
    assert found.point not in (start, other)


def test_a_tabu_search_begins_at_no_rejected_point(clock, monkeypatch):
    """After its first tabu search the episode draws another start, which the check may reject."""
    starts = []

    def searched(_problem, start, _random):
        clock[0] += 0.02
        starts.append(start)
        return start

    monkeypatch.setattr(episode_module, "search_by_tabu", searched)
    monkeypatch.setattr(episode_module, "draw_anew", lambda *_: [9.0] * 5)
    episode, _ = run_episode(clock, only_bits, [0, 1, 0, 1, 1], "tabu", 0.1)
    assert len(starts) > 2
    assert all(start.point == episode.start.point for start in starts)


def only_bits(values):
    if max(values) > 1:
        raise ValueError("not a bit")
    return float(sum(values))


def schwefel(data):
    """Whose optimum, 0, lies at 420.97 in each dimension, far from the second best."""
    return sum(418.9828872724339 - x * math.sin(math.sqrt(abs(x))) for x in data["x"])


@pytest.mark.parametrize(("family", "at"), [("scatter", 0.0), ("jump", 1.0), ("evolution", 0.0)])
def test_a_declared_range_is_searched_however_wide_it_is(clock, family, at):
    """With 2,000 evaluations an episode. Half of the episodes take the range, the others the values seen, and those end
    above 1,700."""
    options = {"takes": 1e-3, "variables": {"x": "-500 .. 500"}}
    found = (
        run_episode(clock, schwefel, {"x": [at] * 5}, family, 2.0, random=Random(seed), **options)[1]
        for seed in range(3)
    )
    assert any(one.measurement.score < 900 for one in found)
