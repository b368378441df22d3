"""The moves, which leave a local optimum: each makes a new point from the current one, whatever the numbers mean.

A move uses only the form of the files: rows of a table, columns, ranges seen so far, and points of other agents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, log
from random import Random
from typing import Self

from coral.native.search.numeric.problem import OptimizationProblem
from coral.search_space.space import SearchSpace, Vector, changed, spans_magnitudes
from coral.search_space.variables import VariableKind

TRIES = (4, 16, 60)  # how many random versions of a row are measured before the best is taken
FREE_RESTARTS = 6  # whole random points, of which a restart takes the best
TRIES_SHARE = 0.1  # of the search's time, for these versions or points
AWAY = 0.1  # of a variable's scale: a row that is drawn anew must differ by as much, or it would fall back


@dataclass(frozen=True, slots=True)
class MoveContext:
    """What a move may use. `ranges`, `scales`: of each variable; `others`: points of other agents."""

    problem: OptimizationProblem
    ranges: Sequence[tuple[float, float]]
    scales: Sequence[float]
    others: Sequence[Vector]
    random: Random

    @property
    def space(self) -> SearchSpace:
        return self.problem.space

    def draw_value(self, k: int) -> float:
        variable = self.space.variables[k]
        if variable.kind is VariableKind.CHOICE:
            return float(self.random.randrange(len(variable.choices)))
        low, high = self.ranges[k]
        if spans_magnitudes(low, high):
            drawn = min(max(exp(self.random.uniform(log(low), log(high))), low), high)
            return float(round(drawn)) if variable.kind is VariableKind.INTEGER else drawn
        if variable.kind is VariableKind.INTEGER:
            return float(self.random.randint(round(low), max(round(low), round(high))))
        return self.random.uniform(low, high)

    def widen(self, factor: float) -> Self:
        """Return the context with ranges that are wider by a factor, within the declared bounds."""
        ranges = []
        for variable, (low, high) in zip(self.space.variables, self.ranges, strict=True):
            margin = 0.5 * (factor - 1.0) * (high - low)
            ranges.append((max(variable.low, low - margin), min(variable.high, high + margin)))
        return replace(self, ranges=ranges)

    def draw_table(self) -> list[list[int]]:
        return self.random.choices(self.space.tables, weights=[len(table) for table in self.space.tables])[0]

    def best_of(self, points: Sequence[Vector]) -> Vector:
        merits = [self.problem.merit(measurement) for measurement in self.problem.measure(points)]
        return points[merits.index(min(merits))]


Move = Callable[[MoveContext, Vector], Vector]


def redraw_rows(context: MoveContext, current: Vector) -> Vector:
    """Draw one or two rows of a table anew, and keep the best of several draws."""
    table = context.draw_table()
    tries = int(min(context.random.choice(TRIES), context.problem.affordable(TRIES_SHARE)))
    for row in context.random.sample(table, min(len(table), context.random.choice((1, 1, 2)))):
        drawn = []
        for _ in range(tries):
            point = changed(current, [(k, context.draw_value(k)) for k in row])
            if any(abs(point[k] - current[k]) > AWAY * context.scales[k] for k in row):
                drawn.append(context.space.clip(point))
        current = context.best_of(drawn) if drawn else current
    return current


def perturb_all(context: MoveContext, current: Vector) -> Vector:
    """Change every number a little; how little is drawn anew each time."""
    size = 10 ** context.random.uniform(-2.5, -0.5)
    point = list(current)
    for k, variable in enumerate(context.space.variables):
        if variable.kind is VariableKind.REAL:
            point[k] += context.random.gauss(0.0, size) * context.scales[k]
        elif context.random.random() < size:
            point[k] = context.draw_value(k)
    return context.space.clip(point)


def redraw_few(context: MoveContext, current: Vector) -> Vector:
    few = context.random.sample(range(len(current)), min(len(current), context.random.randint(1, 3)))
    return context.space.clip(changed(current, [(k, context.draw_value(k)) for k in few]))


def restart(context: MoveContext, current: Vector) -> Vector:
    """Draw every value from its range, and keep the best of several such points."""
    count = int(min(FREE_RESTARTS, context.problem.affordable(TRIES_SHARE)))
    points = [[context.draw_value(k) for k in range(len(current))] for _ in range(count)]
    return context.best_of([context.space.clip(point) for point in points])


def cross(context: MoveContext, current: Vector) -> Vector:
    """Join one part of a table with the other part of another agent's, cut by a random combination of columns."""
    if not context.others:  # their versions of the files have another form
        return restart(context, current)
    other = context.random.choice(context.others)
    if not context.space.tables:
        return [a if context.random.random() < 0.5 else b for a, b in zip(current, other, strict=True)]
    table = context.draw_table()
    weights = [context.random.gauss(0.0, 1.0) for _ in table[0]]

    def side(values: Vector) -> Callable[[list[int]], float]:
        return lambda row: sum(w * values[k] / context.scales[k] for w, k in zip(weights, row, strict=True))

    mine, theirs = sorted(table, key=side(current)), sorted(table, key=side(other))
    cut = context.random.randint(1, len(table) - 1)
    pairs = zip(chain(*mine[cut:]), chain(*theirs[cut:]), strict=True)
    return changed(current, [(k, other[source]) for k, source in pairs])
