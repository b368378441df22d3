"""Moves: ways to leave a local optimum. Each makes a new point from the present one; none knows what the numbers mean.

What a move may use is the form of the files: rows of a table, columns, ranges seen so far, and points of other agents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from coral.native.search.numeric.problem import Problem
from coral.native.search.numeric.space import Space, Vector
from coral.native.search.numeric.variables import Kind

TRIES = (4, 16, 60)  # how many random versions of a row are looked at before one is taken
FREE_RESTARTS = 6  # of whole points, for a scatter to begin from the best of


@dataclass(frozen=True, slots=True)
class View:
    """What a move sees. `ranges` and `scales` are per variable; `others` are points of other agents."""

    problem: Problem
    ranges: Sequence[tuple[float, float]]
    scales: Sequence[float]
    others: Sequence[Vector]
    random: Random
    penalty: float

    @property
    def space(self) -> Space:
        return self.problem.space

    def draw(self, variable: int) -> float:
        """A value for one variable, from all it may be."""
        spot = self.space.spots[variable]
        if spot.kind is Kind.CHOICE:
            return float(self.random.randrange(len(spot.words)))
        low, high = self.ranges[variable]
        if spot.kind is Kind.INTEGER:
            return float(self.random.randint(round(low), max(round(low), round(high))))
        return self.random.uniform(low, high)

    def table(self) -> list[tuple[int, ...]]:
        """One of the tables, the longer the likelier."""
        return self.random.choices(self.space.tables, weights=[len(table) for table in self.space.tables])[0]

    def best_of(self, points: Sequence[Vector]) -> Vector:
        outcomes = self.problem.measure(points)
        merits = [self.problem.merit(outcome, self.penalty) for outcome in outcomes]
        return points[merits.index(min(merits))]


Move = Callable[[View, Vector], Vector]


def restart_rows(view: View, here: Vector) -> Vector:
    """Draw one or two rows of a table anew, and keep the least bad of several draws."""
    table = view.table()
    tries = view.random.choice(TRIES)
    for row in view.random.sample(table, min(len(table), view.random.choice((1, 1, 2)))):
        drawn = []
        for _ in range(tries):
            point = list(here)
            for variable in row:
                point[variable] = view.draw(variable)
            drawn.append(point)
        here = view.best_of(drawn)
    return here


def swap_values(view: View, here: Vector) -> Vector:
    """Exchange some but not all values of two rows."""
    point = list(here)
    one, two = view.random.sample(view.table(), 2)
    width = len(one)
    chosen = view.random.sample(range(width), view.random.randint(1, max(1, width - 1)))
    for k in chosen:
        point[one[k]], point[two[k]] = point[two[k]], point[one[k]]
    return point


def shake(view: View, here: Vector) -> Vector:
    """Move every number a little; how little is drawn anew each time."""
    size = 10 ** view.random.uniform(-2.5, -0.5)
    point = list(here)
    for variable, spot in enumerate(view.space.spots):
        if spot.kind is Kind.REAL:
            point[variable] += view.random.gauss(0.0, size) * view.scales[variable]
        elif view.random.random() < size:
            point[variable] = view.draw(variable)
    return view.space.clip(point)


def nudge_few(view: View, here: Vector) -> Vector:
    """Move one to three numbers far."""
    point = list(here)
    for variable in view.random.sample(range(len(here)), min(len(here), view.random.randint(1, 3))):
        point[variable] = view.draw(variable)
    return view.space.clip(point)


def scatter(view: View, here: Vector) -> Vector:
    """Begin anywhere: every value drawn from its range."""
    points = [[view.draw(variable) for variable in range(len(here))] for _ in range(FREE_RESTARTS)]
    return view.best_of([view.space.clip(point) for point in points])


def cross(view: View, here: Vector) -> Vector:
    """Join one part of a table with the other part of another agent's, cut by a random combination of columns."""
    other = view.random.choice(view.others)
    point = list(here)
    if not view.space.tables:
        return [a if view.random.random() < 0.5 else b for a, b in zip(here, other, strict=True)]
    table = view.table()
    weights = [view.random.gauss(0.0, 1.0) for _ in table[0]]

    def side(values: Vector) -> Callable[[tuple[int, ...]], float]:
        return lambda row: sum(w * values[k] / view.scales[k] for w, k in zip(weights, row, strict=True))

    mine, theirs = sorted(table, key=side(here)), sorted(table, key=side(other))
    cut = view.random.randint(1, len(table) - 1)
    for target, source in zip(mine[cut:], theirs[cut:], strict=True):
        for k, j in zip(target, source, strict=True):
            point[k] = other[j]
    return point
