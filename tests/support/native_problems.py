"""Small optimization problems for the numerical methods of the native agent, measured in this process."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from coral.native.search.numeric.finite_differences import FiniteDifferences
from coral.native.search.numeric.problem import OptimizationProblem
from coral.public_check.candidate import Measurement
from coral.search_space.declarations import read_declarations
from coral.search_space.space import SearchSpace


class MeasuredHere:
    """A check that is a function of the content of `p.json`; what it raises is an error of the candidate."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, candidates: Sequence[dict[str, str]]) -> list[Measurement]:
        return [self._measurement(json.loads(texts["p.json"])) for texts in candidates]

    def _measurement(self, values: object) -> Measurement:
        try:
            result = self.function(values)
        except (ValueError, ArithmeticError) as problem:
            return Measurement(error=str(problem) or "undefined")
        return Measurement(*result) if isinstance(result, tuple) else Measurement(result)


class MeasuredLines:
    """A check that is a function of the words behind `name =` on each line of `p.cfg`."""

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __call__(self, candidates: Sequence[dict[str, str]]) -> list[Measurement]:
        words = [[line.split()[2] for line in texts["p.cfg"].splitlines()] for texts in candidates]
        return [Measurement(self.function(*values)) for values in words]


def problem(
    function: Callable[[Any], Any], start: object, maximize: bool = False, variables: Mapping[str, str] | None = None
) -> OptimizationProblem:
    """`variables`: what a task declares."""
    space = SearchSpace({"p.json": json.dumps(start)}, read_declarations(variables or {}))
    return OptimizationProblem(space, MeasuredHere(function), maximize)


def differences(task: OptimizationProblem) -> FiniteDifferences:
    return FiniteDifferences(task, task.space.reals, task.space.scales([task.space.start]), Random(1))


def rosenbrock(x: Sequence[float]) -> float:
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def repelling_points(data: dict[str, list[dict[str, float]]]) -> tuple[float, list[float]]:
    """Return a table of points that repel each other in a box: many optima, none of them known to the search."""
    rows = [(row["x"], row["y"]) for row in data["rows"]]
    energy = sum(1 / (1e-3 + abs(complex(*a) - complex(*b))) for k, a in enumerate(rows) for b in rows[:k])
    return energy, [gap for x, y in rows for gap in (x, 1 - x, y, 1 - y)]


EIGHT_POINTS = {"rows": [{"x": 0.2 + 0.07 * k, "y": 0.3 + 0.05 * k * k / 8} for k in range(8)]}
