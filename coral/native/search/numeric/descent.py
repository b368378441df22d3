"""Constrained local descent: a sequence of elastic linear (or, where curvature shows, quadratic) programs in a box.

A step is kept when the merit - cost plus penalised violations - falls as the model foretold; the box grows and shrinks
with how well the model foretells. Constraints are kept at a small distance from broken, so that what converges is
strictly feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from operator import mul

from coral.native.search.numeric.curvature import Curvature
from coral.native.search.numeric.finite_differences import Differences, Slopes
from coral.native.search.numeric.problem import Place, Problem
from coral.native.search.numeric.qp import Program, solve
from coral.native.search.numeric.space import Vector

NARROWEST = 1e-11  # half the width of the box, in scales
CROWDED = 0.1  # beyond, the box of a constrained problem widens only after several steps to its edge
PATIENCE = 8
WIDEST = 1e3
POOR, GOOD = 0.2, 0.7  # how much of the foretold gain came true
MARGIN = 1e-12  # of a constraint's slope: how far inside it a finished point stays
HOPEFUL = 3.0  # further gains of this many times the last foretold one are still hoped for
MOST_STEPS = 300
MOST_BENT = 150  # variables of which curvature is modelled
SHARPER = 1e-3  # how much more accurate a program is solved that seemed to promise nothing
FIRST, NEXT = 1e-2, 0.1  # accuracy of the first program, and of a next one as a share of the gain last foretold
FINEST = 1e-14  # relative accuracy of a program's solution
DEAREST = 1e9  # the penalty stops growing at this many times its first value


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop: gains below `precision` (relative), or no hope of a cost below `beat`."""

    precision: float = 1e-8
    beat: float | None = None
    radius: float = 0.1  # the first half-width of the box, in scales


@dataclass(slots=True)
class Descent:
    """One descent; its state is what the next step depends on."""

    problem: Problem
    differences: Differences
    goal: Goal
    steps: int = 0
    radius: float = 0.0
    penalty: float = 0.0
    bends: bool = False  # whether curvature is modelled
    free: bool = False  # whether there are no constraints
    poor: int = 0  # poor steps in a row
    edge: int = 0  # good steps to the edge of the box in a row
    curvature: Curvature = field(init=False)

    def __post_init__(self) -> None:
        self.radius = self.goal.radius
        self.curvature = Curvature(len(self.differences.free))

    def run(self, start: Place) -> Place:
        """The best place reached from `start`, which must have an outcome."""
        here, model = start, self._model(start)
        self.penalty = first = _fair_penalty(model) or 1.0
        self.bends = self.free = not start.outcome.slack
        accuracy = FIRST
        for self.steps in range(1, MOST_STEPS + 1):
            answer = solve(self._program(here, model), accuracy * self._unit(here))
            foretold = self._merit(here) - self._modelled(here, model, answer.step)
            if foretold <= self.goal.precision * self._unit(here):
                if accuracy > NEXT * self.goal.precision:
                    accuracy *= SHARPER
                elif here.outcome.worst >= 0.0 or self.penalty >= DEAREST * first:
                    break
                else:
                    self.penalty *= 10.0
                continue
            there = self._measure(here, answer.step)
            gained = self._merit(here) - self._merit(there)
            self._resize(gained, foretold, answer.step)
            accuracy = max(FINEST, min(accuracy, NEXT * foretold / self._unit(here)))
            if gained > 0.0:
                new = self._model(there)
                if self.bends:
                    self.curvature.learn(answer.step, _bend(model, new, answer.multipliers))
                here, model = there, new
                self.penalty = max(self.penalty, _fair_penalty(model))
            elif self.differences.doubtful:
                model = self._model(here)
            if self.radius < NARROWEST or self._hopeless(here, foretold):
                break
        return here

    def _unit(self, place: Place) -> float:
        return max(1.0, abs(self.problem.cost(place.outcome)))

    def _model(self, place: Place) -> Slopes:
        return self.differences.at(place.point, place.outcome, self.radius)

    def _program(self, here: Place, model: Slopes) -> Program:
        """The local model; a declared bound narrows the box on its side."""
        low, high = [], []
        for k, scale in zip(self.differences.free, self.differences.scales, strict=True):
            spot = self.problem.space.spots[k]
            low.append(max(-self.radius, (spot.low - here.point[k]) / scale))
            high.append(min(self.radius, (spot.high - here.point[k]) / scale))
        return Program(
            gradient=model.gradient,
            curvature=self.curvature.matrix if self.bends else None,
            rows=model.rows,
            offsets=[
                here.outcome.slack[number] - MARGIN * row.size()
                for number, row in zip(model.numbers, model.rows, strict=True)
            ],
            lower=low,
            upper=high,
            penalty=self.penalty,
        )

    def _modelled(self, here: Place, model: Slopes, step: Vector) -> float:
        """The merit that the model foretells after a step."""
        value: float = self.problem.cost(here.outcome) + sum(map(mul, model.gradient, step))
        if self.bends and self.curvature.matrix is not None:
            bent: list[float] = [sum(map(mul, line, step)) for line in self.curvature.matrix]
            value += 0.5 * sum(map(mul, step, bent))
        for number, row in zip(model.numbers, model.rows, strict=True):
            gap = here.outcome.slack[number] - MARGIN * row.size() + row.dot(step)
            if gap < 0.0:
                value -= self.penalty * gap
        return value

    def _merit(self, place: Place) -> float:
        """As `Problem.merit`, with every constraint a margin inside."""
        outcome, size = place.outcome, self.differences.size
        if outcome.error:
            return inf
        value = self.problem.cost(outcome)
        if outcome.worst < MARGIN * max(size.values(), default=0.0):
            for number, gap in enumerate(outcome.slack):
                gap -= MARGIN * size.get(number, 0.0)
                if gap < 0.0:
                    value -= self.penalty * gap
        return value

    def _measure(self, here: Place, step: Vector) -> Place:
        point = list(here.point)
        for k, scale, move in zip(self.differences.free, self.differences.scales, step, strict=True):
            point[k] += scale * move
        return self.problem.visit(self.problem.space.clip(point))[0]

    def _resize(self, gained: float, foretold: float, step: Vector) -> None:
        """Widen the box where the model was good up to its edge, narrow it where it was not."""
        longest = max(map(abs, step), default=0.0)
        if gained >= GOOD * foretold > 0.0:
            self.poor = 0
            self.edge = self.edge + 1 if longest > 0.9 * self.radius else 0
            if not self.edge:
                self.radius = min(self.radius, 2 * longest)
            elif self.free or self.radius < CROWDED or self.edge > PATIENCE:
                self.radius = min(WIDEST, 2 * self.radius)
        elif gained < POOR * foretold:
            self.poor, self.edge = self.poor + 1, 0
            self.radius *= 0.3
            if self.poor == 2:
                self.differences.distrust()
                self.bends = self.bends or len(step) <= MOST_BENT

    def _hopeless(self, here: Place, foretold: float) -> bool:
        beat = self.goal.beat
        return beat is not None and self.steps > 3 and self._merit(here) - HOPEFUL * max(foretold, 0.0) > beat


def _fair_penalty(model: Slopes) -> float:
    """A price per unit of violation above what the objective can gain from one; 0 where no constraint is near."""
    steepest = [0.0] * len(model.gradient)
    for row in model.rows:
        for column, value in zip(row.columns, row.values, strict=True):
            steepest[column] = max(steepest[column], abs(value))
    return 3.0 * max((abs(g) / s for g, s in zip(model.gradient, steepest, strict=True) if s), default=0.0)


def _bend(old: Slopes, new: Slopes, multipliers: Vector) -> Vector:
    """How the Lagrangian's gradient changed between two models, at the multipliers of the first."""
    change = [b - a for a, b in zip(old.gradient, new.gradient, strict=True)]
    after = dict(zip(new.numbers, new.rows, strict=True))
    for number, row, multiplier in zip(old.numbers, old.rows, multipliers, strict=True):
        if number in after:
            for column, a, b in zip(row.columns, row.values, after[number].values, strict=True):
                change[column] -= multiplier * (b - a)
    return change
