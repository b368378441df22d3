"""The numeric core on small unrelated problems: it knows nothing of any of them."""

import json
import math
import time
from itertools import pairwise
from random import Random

import pytest

from coral.native.search import unchecked_search as blind
from coral.native.search.bandit import Credit, draw, merge
from coral.native.search.check import Outcome
from coral.native.search.episode import Episode, Plan
from coral.native.search.families import FAMILIES, suitable
from coral.native.search.local_search import Ground
from coral.native.search.numeric.compass import Compass
from coral.native.search.numeric.descent import Descent, Goal
from coral.native.search.numeric.evolution import Evolution
from coral.native.search.numeric.finite_differences import Differences
from coral.native.search.numeric.problem import Place, Problem, TimeUp
from coral.native.search.numeric.qp import Program, solve
from coral.native.search.numeric.space import Space
from coral.native.search.numeric.sparse import NormalMatrix, Row


class Function:
    """A check that runs here: a function of the numbers in `p.json`."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def measure(self, candidates):
        return [self.outcome(json.loads(texts["p.json"])) for texts in candidates]

    def outcome(self, values):
        self.calls += 1
        try:
            result = self.function(values)
        except (ValueError, ArithmeticError) as problem:
            return Outcome(error=str(problem) or "undefined")
        return Outcome(*result) if isinstance(result, tuple) else Outcome(result)


def problem(function, start, maximize=False):
    return Problem(Space({"p.json": json.dumps(start)}), Function(function), maximize)


def descend(function, start, maximize=False, precision=1e-12):
    task = problem(function, start, maximize)
    space = task.space
    differences = Differences(task, space.reals, space.scales([space.start]), Random(1))
    return Descent(task, differences, Goal(precision=precision)).run(task.visit(space.start)[0])


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def test_the_factors_solve_a_sparse_system():
    random = Random(3)
    rows = [Row((k, (k + 5) % 12), (random.gauss(0, 1), random.gauss(0, 1))) for k in range(12) if k != 7]
    rows = [Row(*zip(*sorted(zip(r.columns, r.values, strict=True)), strict=True)) for r in rows]
    base = [[float(i == j) for j in range(12)] for i in range(12)]
    for curvature in (None, base):
        weights, diagonal = [random.random() for _ in rows], [1 + random.random() for _ in range(12)]
        matrix = NormalMatrix(12, rows, curvature)
        matrix.factor(diagonal, weights)
        right = [random.gauss(0, 1) for _ in range(12)]
        x = matrix.solve(right)
        back = [d * v + (v if curvature else 0.0) for d, v in zip(diagonal, x, strict=True)]
        for row, weight in zip(rows, weights, strict=True):
            for column, value in zip(row.columns, row.values, strict=True):
                back[column] += weight * value * row.dot(x)
        assert back == pytest.approx(right)


def test_a_linear_program_is_solved_at_its_vertex():
    rows = [Row((0, 1), (-1.0, -1.0)), Row((0,), (-1.0,))]  # x + y <= 1, x <= 0.25
    answer = solve(
        Program(
            gradient=[-2.0, -1.0],
            curvature=None,
            rows=rows,
            offsets=[1.0, 0.25],
            lower=[-1.0, -1.0],
            upper=[1.0, 1.0],
            penalty=100.0,
        ),
        1e-12,
    )
    assert answer.step == pytest.approx([0.25, 0.75], abs=1e-9)
    assert answer.multipliers == pytest.approx([1.0, 1.0], abs=1e-6)


def test_rows_that_cannot_be_met_are_missed_as_little_as_possible():
    rows = [Row((0,), (1.0,)), Row((0,), (-1.0,))]  # x >= 0.5 and x <= -0.1
    answer = solve(
        Program(gradient=[0.0], curvature=None, rows=rows, offsets=[-0.5, -0.1], lower=[-1.0], upper=[1.0], penalty=5),
        1e-9,
    )
    assert -0.1 - 1e-6 <= answer.step[0] <= 0.5 + 1e-6


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_curved_valley_is_followed_to_its_end(count):
    assert descend(rosenbrock, [-1.2, 1.0] * (count // 2)).outcome.score < 1e-6


def test_an_optimum_on_curved_constraints_is_strictly_feasible():
    found = descend(lambda x: ((x[0] - 2) ** 2 + (x[1] - 1) ** 2, [1 - x[0] ** 2 - x[1] ** 2]), [0.1, 0.2])
    assert found.point == pytest.approx([2 / math.sqrt(5), 1 / math.sqrt(5)], abs=1e-4)
    assert found.outcome.worst > 0


def test_an_objective_that_grows_steep_is_held_back():
    """The price of a violation that was fair at the start is far too low at the optimum."""
    found = descend(lambda x: (x[0] ** 4, [2 - x[0]]), [0.1], maximize=True)
    assert found.outcome.feasible
    assert found.point[0] == pytest.approx(2.0, abs=1e-9)


def test_an_infeasible_start_is_made_feasible():
    """Hock and Schittkowski 71 with its equation as an inequality, from outside."""

    def function(x):
        slack = [x[0] * x[1] * x[2] * x[3] - 25, 40 - sum(v * v for v in x)]
        return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], slack + [v - 1 for v in x] + [5 - v for v in x]

    found = descend(function, [1.0, 5.0, 5.5, 0.5])
    assert found.outcome.feasible
    assert found.outcome.score == pytest.approx(17.014, abs=1e-3)


def test_a_linear_objective_is_differenced_only_once():
    task = problem(lambda x: (sum(x), [1 - v * v for v in x]), [0.1] * 20, maximize=True)
    differences = Differences(task, task.space.reals, task.space.scales([task.space.start]), Random(1))
    here = task.visit(task.space.start)[0]
    differences.at(here.point, here.outcome, 1e3)
    before = task.evaluations
    model = differences.at(here.point, here.outcome, 1e3)
    # No two constraints share a variable: all twenty move at once.
    assert task.evaluations == before + 1
    assert len(model.rows) == 20
    assert model.gradient == pytest.approx([-0.1] * 20)


def test_a_domain_that_ends_is_no_obstacle():
    found = descend(lambda x: x[0] - math.log(x[0]) + (x[1] - 3) ** 2, [5.0, 0.0001])
    assert found.point == pytest.approx([1.0, 3.0], abs=1e-3)


def test_declared_bounds_hold():
    space = Space({"p.cfg": "x = 0.5 # range: 0..2\ny = 0.5 # range: -1..1\n"})

    class Check:
        def measure(self, candidates):
            values = [[float(line.split()[2]) for line in c["p.cfg"].splitlines()] for c in candidates]
            assert all(0 <= x <= 2 and -1 <= y <= 1 for x, y in values)
            return [Outcome(x + y) for x, y in values]

    task = Problem(space, Check(), True)
    differences = Differences(task, space.reals, space.scales([space.start]), Random(1))
    found = Descent(task, differences, Goal()).run(task.visit(space.start)[0])
    assert found.point == pytest.approx([2.0, 1.0], abs=1e-6)


def test_the_compass_finds_integers_choices_and_kinks():
    space = Space({"p.cfg": "n = 3\nkind = a # choices: a, b, c\nx = 9.5\n"})

    class Check:
        def measure(self, candidates):
            out = []
            for texts in candidates:
                n, kind, x = (line.split()[2] for line in texts["p.cfg"].splitlines())
                out.append(Outcome(abs(int(n) - 40) + (0 if kind == "c" else 5) + abs(float(x) - 0.5)))
            return out

    task = Problem(space, Check(), False)
    scales = space.scales([space.start])
    found = Compass(task, range(3), scales, Random(1), 3.0).run(task.visit(space.start)[0])
    assert found.point[:2] == [40.0, 2.0]
    assert found.outcome.score < 1e-4


def test_evolution_gets_over_a_rough_surface():
    def rough(x):
        return sum(v * v for v in x) + 0.2 * math.floor(5 * abs(x[0]))

    task = problem(rough, [3.0, -2.0, 4.0])
    scales = task.space.scales([task.space.start])
    found = Evolution(task, range(3), scales, Random(1), 3.0).run(task.visit(task.space.start)[0])
    assert found.outcome.score < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name, each in FAMILIES.items() if not each.needs_others])
def test_every_family_brings_a_candidate_that_differs(family):
    """A table of eight points that repel each other in a box: many optima, none of them known to the search."""

    def function(data):
        rows = [(row["x"], row["y"]) for row in data["rows"]]
        energy = sum(1 / (1e-3 + math.dist(a, b)) for k, a in enumerate(rows) for b in rows[:k])
        return energy, [gap for x, y in rows for gap in (x, 1 - x, y, 1 - y)]

    rows = [{"x": 0.2 + 0.07 * k, "y": 0.3 + 0.05 * k * k / 8} for k in range(8)]
    task = problem(function, {"rows": rows})
    reports = []
    plan = Plan(family=family, start=task.space.start, here=task.space.start, others=[], seconds=0.3)
    found = Episode(task, plan, Random(2), lambda text, share: reports.append((text, share))).run()
    assert found.candidate.point != task.space.start
    assert found.candidate.outcome.feasible
    assert found.candidate.outcome.score < found.start.outcome.score
    assert found.seconds < 2
    assert all(0 <= share <= 1 for _, share in reports)


@pytest.mark.slow
def test_at_an_optimum_the_next_best_is_handed_in():
    """Else stagnation could not be seen: the same result again would look like an attempt that changed nothing."""

    def function(x):
        return sum(v * v - 3 * math.cos(5 * v) for v in x), [9 - v * v for v in x]

    task = problem(function, [2.4, -1.3, 0.1])
    best = [1e-9, 1e-9, 1e-9]
    plan = Plan(family="jump", start=best, here=best, others=[], seen=[task.space.start], seconds=0.4)
    again = Episode(task, plan, Random(2), lambda *_: None).run().candidate
    assert again.outcome.feasible
    assert again.outcome.score > -9 + 1e-3


def test_crossing_joins_parts_of_two_candidates():
    mine = {"rows": [{"x": float(k), "y": 0.5} for k in range(6)]}
    theirs = {"rows": [{"x": k + 0.25, "y": 7.5} for k in range(6)]}
    task = problem(lambda data: 0.0, mine)
    other = task.space.vector({"p.json": json.dumps(theirs)})
    ground = Ground.of(task, task.space.start, [other], [], Random(1), 1.0)
    point = FAMILIES["cross"].move(ground.view, task.space.start)
    taken = [k for k, value in enumerate(point) if value in other]
    assert 0 < len(taken) < len(point)
    assert all(value in other or value in task.space.start for value in point)


def test_an_episode_ends_in_time_however_slow_the_check_is(monkeypatch):
    """By a clock that the check alone moves: how slow the machine is makes no difference."""
    now = [1000.0]

    def slow(x):
        now[0] += 0.02
        return rosenbrock(x)

    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now[0])
        task = problem(slow, [-1.2, 1.0] * 20)
        plan = Plan(family="descent", start=task.space.start, here=task.space.start, others=[], seconds=0.5)
        found = Episode(task, plan, Random(2), lambda *_: None, began=now[0]).run()
    assert found.moves + found.evaluations > 2
    assert found.seconds < 1


def test_time_that_is_up_is_up():
    task = problem(rosenbrock, [1.5, 2.5])
    task.deadline = time.monotonic() - 1
    with pytest.raises(TimeUp):
        task.measure([task.space.start])


def test_nothing_that_breaks_constraints_beats_what_does_not():
    task = problem(lambda x: (x[0], [x[0] - 1]), [0.0])
    bad = Place([0.0], Outcome(0.0, [-1.0]))
    good = Place([2.0], Outcome(2.0, [1.0]))
    assert task.rank(good) < task.rank(bad)
    assert task.rank(Place([0.0], Outcome(error="no"))) == (math.inf, math.inf)


def test_only_what_suits_is_offered():
    scalar = Space({"p.json": "0.5"})
    table = Space({"p.json": json.dumps({"rows": [{"x": 0.1, "y": 0.2}] * 3})})
    words = Space({"p.cfg": "kind = a # choices: a, b\n"})
    assert "rows" not in suitable(scalar, others=False, check=True)
    assert {"rows", "swap", "cross"} <= set(suitable(table, others=True, check=True))
    assert "cross" not in suitable(table, others=False, check=True)
    assert "descent" not in suitable(table, others=False, check=False)
    assert "descent" not in suitable(words, others=False, check=True)
    assert suitable(Space({"p.json": '"x"'}), others=True, check=True) == []


@pytest.mark.parametrize("family", [name for name, each in FAMILIES.items() if each.move])
def test_without_a_check_each_family_still_proposes(family):
    space = Space({"p.json": json.dumps({"rows": [{"x": 0.1 * k, "n": k, "on": True} for k in range(1, 5)]})})
    point = blind.propose(space, space.start, [space.start], family, 0.2, None, Random(4))
    assert point != space.start
    assert space.vector(space.texts(point)) == point


def test_the_opposite_of_what_failed_is_tried():
    space = Space({"p.json": "[1.5, 2.5]"})
    assert blind.propose(space, [1.5, 2.5], [], "shake", 0.2, [1.0, 4.0], Random(1)) == [2.0, 1.0]
    assert blind.next_size(0.2, improved=True) > 0.2 > blind.next_size(0.2, improved=False)


def test_small_steps_without_a_check_get_somewhere():
    """Two hundred attempts, each the only measurement: what a fleet without a public check does."""
    space, random = Space({"p.json": "[3.5, -2.5, 1.5]"}), Random(5)
    best, size, failed = space.start, blind.FIRST, None

    def cost(x):
        return sum(v * v for v in x)

    for _ in range(200):
        point = blind.propose(space, best, [], "shake", size, failed, random)
        better = cost(point) < cost(best)
        size = blind.next_size(size, better)
        failed = None if better or failed is not None else point
        best = point if better else best
    assert cost(best) < 0.01 * cost(space.start)


def test_credit_follows_what_pays_and_forgets():
    own = {"rows": Credit(), "shake": Credit()}
    for _ in range(12):
        own["rows"], own["shake"] = own["rows"].after(0.1), own["shake"].after(0.0)
    drawn = [draw(["rows", "shake"], own, {}, Random(k)) for k in range(100)]
    assert drawn.count("rows") > 90
    for _ in range(40):
        own["rows"] = own["rows"].after(0.0)
    drawn = [draw(["rows", "shake"], own, {}, Random(k)) for k in range(100)]
    assert drawn.count("rows") < 90


def test_the_experience_of_others_counts_a_little():
    others = merge([{"shake": Credit(30.0, 30.0, 1.0)}, {"shake": Credit(2.0, 0.0), "rows": Credit(30.0, 0.0)}])
    assert others["shake"] == Credit(32.0, 30.0, 1.0)
    alone = [draw(["rows", "shake"], {}, {}, Random(k)) for k in range(200)].count("shake")
    told = [draw(["rows", "shake"], {}, others, Random(k)) for k in range(200)].count("shake")
    assert told > alone + 40


def test_wins_of_others_make_a_family_likelier():
    told = {"shake": Credit(30.0, 30.0, 1.0)}
    alone = [draw(["rows", "shake"], {}, {}, Random(k)) for k in range(200)].count("shake")
    assert [draw(["rows", "shake"], {}, told, Random(k)) for k in range(200)].count("shake") > alone + 20


def test_old_tries_weigh_little():
    credit = Credit()
    for _ in range(500):
        credit = credit.after(0.0)
    assert credit.tries < 20


@pytest.mark.parametrize(
    "data", [{}, {"tries": "x"}, {"tries": -1, "wins": 2}, {"tries": 2, "wins": 9}, {"tries": 1e30}]
)
def test_borrowed_credit_is_never_nonsense(data):
    credit = Credit.from_dict(data)
    assert 0 <= credit.wins <= credit.tries
