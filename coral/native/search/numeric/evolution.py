"""The evolution strategy CMA-ES with restarts, for rough problems: it needs only the order of each generation's merits.

Runs have populations of different sizes. They are doubled (IPOP, Auger and Hansen 2005) while the largest population
has found the best point; otherwise all sizes take as many evaluations. A run may take longer than an episode:
`Evolution` is a value that can be kept, and goes on where it was.

The mean of a large population lies in the best basin long before the population does. So a local search begins at the
mean again and again, once the population has begun to contract; when it leads to the same optimum several times in a
row, the run has ended. So has one whose candidates differ in the last digits alone, or that converges far above the
best.
"""

import pickle
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from coral.native.search.numeric.problem import SAME, EvaluatedPoint, OptimizationProblem
from coral.search_space.space import Vector, changed

FIRST_STEP = 0.2  # in scales
MOST_CORRELATED = 100  # variables between which correlations are learned; with more, that takes longer than it helps
LOCAL_SHARE = 0.2  # of a run's evaluations of populations: so many more may be made by local searches from their mean,
# divided by one more than how many of these have found nothing better than the generation before them
CONTRACTED = 0.5  # of the population's first spread: while it is wider, the mean is still about where the run began
UNMOVED = 0.05  # of the population's spread: an optimum that moves less is the same one
SAME_OPTIMA = 3  # in a row, after the first one, that end a run
GENERATION_SHARE = 0.25  # of the search's time, for the largest population
CONVERGED = 1e-5  # of its best merit, and of how far those of the first generation differed: less has converged
LARGE = 4  # doublings of the second run's population, if that is to be large
HOPELESS = 10.0  # times its own spread: a generation this far from the record ends its run


@dataclass
class Evolution:
    """Makes one run after the other. `base` holds the values of variables that it does not change.

    It has no slots: a kept one would have the values of its fields by their order, and not by their names."""

    indices: Sequence[int]  # of the variables that it changes
    base: Vector
    scales: Sequence[float]
    large: bool = False  # whether the second run has a large population
    strategy: Any = None
    record: float = inf  # the best merit known, also of what others have found
    best: float = inf  # the best merit of all runs
    best_doublings: int = 0  # of the population that has found it
    doublings: int = 0  # of the population of this run
    evaluations: dict[int, int] = field(default_factory=dict)  # in all runs, by the doublings of their populations
    by_local_searches: int = 0  # evaluations in this run
    by_last_local_search: int = 0  # evaluations
    poor_local_searches: int = 0  # which found nothing better than the last generation
    least: float = inf  # the best merit of the last generation
    differed: float = 0.0  # how far the merits of the first generation of this run differed
    optimum: Vector | None = None  # to which the last local search led
    same_optima: int = 0  # local searches in a row that led there again

    @property
    def ended(self) -> bool:
        return self.strategy is None or bool(self.strategy.stop())

    def next_doublings(self) -> int:
        """Return how often the population of the next run should be doubled. A larger one than ever pays where the
        largest has found the best point: many optima ask for large populations. Where it has not, many runs pay more,
        and those of each size are given as many evaluations."""
        if not self.evaluations:
            return 0
        largest = max(self.evaluations)
        if self.best_doublings == largest:
            return max(largest + 1, LARGE if self.large else 0)
        return min(range(largest + 1), key=lambda doublings: self.evaluations.get(doublings, 0))

    def begin(self, start: Vector, random: Random, doublings: int = 0, most: float = inf) -> None:
        """Begin a new run at this point. `doublings`: how often the smallest population is doubled; `most`: the
        largest population."""
        cma = load_cma()
        self.base, self.doublings, count = start, doublings, len(self.indices)
        self.evaluations.setdefault(doublings, 0)
        size = (4 + int(3 * np.log(count))) * 2**doublings
        options = {
            "popsize": int(min(most, size)),
            "CMA_diagonal": count > MOST_CORRELATED,
            "CMA_mirrors": 0,  # the reflected point of a generation that is cut off would be missed later
            "randn": np.random.RandomState(random.getrandbits(32)).randn,  # kept with the strategy
            "seed": np.nan,  # nothing is drawn from generators that others use
            "verbose": -9,
        }
        self.by_local_searches = self.poor_local_searches = self.same_optima = 0
        self.optimum, self.differed = None, 0.0
        self.strategy = cma.CMAEvolutionStrategy([start[k] / self.scales[k] for k in self.indices], FIRST_STEP, options)

    def run(
        self,
        problem: OptimizationProblem,
        descend: Callable[[EvaluatedPoint], EvaluatedPoint] | None = None,
        on_generation: Callable[[], None] = lambda: None,
    ) -> EvaluatedPoint:
        """Make generations until the run has ended; return the best point met. `descend`: returns the local optimum
        near a point; `on_generation`: called after each generation, so that the evolution can be saved."""
        met: list[EvaluatedPoint] = []
        while not met or not self.ended:
            met.append(self._make_generation(problem))
            on_generation()
            if descend and not self.ended and self._is_local_search_due():
                met.append(self._search_from_mean(problem, descend))
            met = [min(met, key=lambda candidate: problem.merit(candidate.measurement))]
        return met[0]

    def _is_local_search_due(self) -> bool:
        """Return whether a local search may begin at the mean, if it takes as long as the last one. Before the
        population has contracted, it would do what a descent from the start of the run does, and its gain would count
        as the evolution's."""
        share = LOCAL_SHARE / (1 + self.poor_local_searches)
        has_contracted = np.mean(self.strategy.stds) <= CONTRACTED * self.strategy.sigma0
        expected = self.by_local_searches + self.by_last_local_search
        return bool(has_contracted and expected <= share * self.strategy.countevals)

    def _make_generation(self, problem: OptimizationProblem) -> EvaluatedPoint:
        """Return the best point of the next generation."""
        drawn = self.strategy.ask()
        evaluated = problem.evaluate(*(self._point(problem, position) for position in drawn))
        merits = [problem.merit(candidate.measurement) for candidate in evaluated]
        self.strategy.tell(drawn, merits)
        least, differing = min(merits), max(merits) - min(merits)
        self.differed = self.differed or differing
        if least - self.record > HOPELESS * differing or 0.0 < differing < CONVERGED * min(abs(least), self.differed):
            self.strategy = None
        self.least = least
        self.evaluations[self.doublings] += len(evaluated)
        self._compare(least)
        return evaluated[merits.index(least)]

    def _search_from_mean(
        self, problem: OptimizationProblem, descend: Callable[[EvaluatedPoint], EvaluatedPoint]
    ) -> EvaluatedPoint:
        """Return the local optimum near the mean of the population."""
        before, last = problem.evaluations, self.optimum
        try:
            found = descend(problem.evaluate(self._point(problem, self.strategy.mean))[0])
        finally:  # also where the episode's time ends in the middle of it
            self.by_last_local_search = problem.evaluations - before
            self.by_local_searches += self.by_last_local_search
            self.evaluations[self.doublings] += self.by_last_local_search
        self.poor_local_searches += problem.merit(found.measurement) >= self.least
        self.optimum = found.point
        spreads = zip(self.indices, self.strategy.stds.tolist(), strict=True)
        is_same = last and all(
            abs(found.point[k] - last[k]) < UNMOVED * self.scales[k] * spread for k, spread in spreads
        )
        self.same_optima = self.same_optima + 1 if is_same else 0
        if self.same_optima == SAME_OPTIMA:
            self.strategy = None
        self._compare(problem.merit(found.measurement))
        return found

    def _compare(self, merit: float) -> None:
        """Compare a merit with the best of all runs, and with the record."""
        self.record = min(self.record, merit)
        if merit < self.best - SAME * max(1.0, abs(merit)):
            self.best, self.best_doublings = merit, self.doublings

    def _point(self, problem: OptimizationProblem, position: Sequence[float]) -> Vector:
        values = [float(value) * self.scales[k] for k, value in zip(self.indices, position, strict=True)]
        return problem.space.clip(changed(self.base, zip(self.indices, values, strict=True)))


def load_cma() -> Any:
    """Import cma, which takes as long as all the rest; without matplotlib, which takes a second more where it is
    installed, and draws nothing here."""
    is_hidden = "matplotlib" not in sys.modules
    if is_hidden:
        sys.modules["matplotlib"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings(action="ignore"):  # that it cannot plot
            return import_module("cma")
    finally:
        if is_hidden:
            del sys.modules["matplotlib"]


def save_evolution(path: Path, evolution: Evolution, program: str) -> None:
    """Write the evolution to a file, whole or not at all, whenever the process ends. `program`: names the program whose
    variables it changes."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(pickle.dumps((program, evolution)))
    temporary.replace(path)


def load_evolution(path: Path, indices: Sequence[int], size: int, program: str) -> Evolution | None:
    """Read the evolution that was kept; None if there is none, or it is damaged, or of other variables or another
    program, or was written by another version."""
    try:
        found = path.read_bytes()
        load_cma()  # before `pickle`, which would import it with matplotlib
        of, kept = pickle.loads(found)
    except Exception:  # noqa: BLE001 - a damaged pickle may raise anything
        return None
    is_whole = isinstance(kept, Evolution) and vars(kept).keys() == {field.name for field in fields(Evolution)}
    is_same = is_whole and (of, list(kept.indices), len(kept.base)) == (program, list(indices), size)
    return kept if is_same else None
