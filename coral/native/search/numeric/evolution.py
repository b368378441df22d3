"""The evolution strategy CMA-ES with restarts, for rough problems: it needs only the order of each generation's merits.

Restarts follow BIPOP (Hansen 2009): runs with a population that doubles, and between them runs with small ones and a
narrower spread, so that both kinds get as many evaluations. A run may take longer than an episode: `Evolution` is a
value that can be kept, and goes on where it was.
"""

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.space import Vector, changed

FIRST_STEP = 0.2  # in scales
MOST_CORRELATED = 100  # variables between which correlations are learned; with more, that takes longer than it helps
HOPELESS = 10.0  # times its own spread: a generation this far from the record ends its run
LARGE, SMALL = 0, 1  # the two kinds of runs


@dataclass(slots=True)
class Evolution:
    """Makes one run after the other. `base` holds the values of variables that it does not change."""

    indices: Sequence[int]  # of the variables that it changes
    base: Vector
    scales: Sequence[float]
    strategy: Any = None
    record: float = inf  # the best merit that a generation has had
    kind: int = LARGE
    runs: int = 0  # how many runs with large populations were begun
    spent: list[int] = field(default_factory=lambda: [0, 0])  # evaluations of each kind

    @property
    def ended(self) -> bool:
        return self.strategy is None or bool(self.strategy.stop())

    def next_kind(self) -> int:
        return SMALL if self.spent[SMALL] < self.spent[LARGE] and self.runs > 1 else LARGE

    def begin(self, start: Vector, kind: int, random: Random) -> None:
        """Begin a new run of this kind at this point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it cannot plot
            import cma  # here: it takes as long to import as all the rest
        self.base, self.kind, count = start, kind, len(self.indices)
        usual = 4 + int(3 * np.log(count))
        largest = usual * 2 ** max(0, self.runs - (kind == SMALL))
        share = random.random()
        options = {
            "popsize": largest if kind == LARGE else int(usual * (0.5 * largest / usual) ** (share * share)),
            "CMA_diagonal": count > MOST_CORRELATED,
            "randn": np.random.RandomState(random.getrandbits(32)).randn,  # kept with the strategy
            "seed": np.nan,  # nothing is drawn from generators that others use
            "verbose": -9,
        }
        spread = FIRST_STEP * (1.0 if kind == LARGE else 0.01 ** random.random())
        self.runs += kind == LARGE
        self.strategy = cma.CMAEvolutionStrategy([start[k] / self.scales[k] for k in self.indices], spread, options)

    def run(self, problem: OptimizationProblem) -> EvaluatedPoint:
        """Make generations until the run has ended; return the best point met."""
        best: list[tuple[float, EvaluatedPoint]] = []
        while not best or not self.ended:
            drawn = self.strategy.ask()
            evaluated = problem.evaluate(*(self._point(problem, position) for position in drawn))
            self.spent[self.kind] += len(drawn)
            merits = [problem.merit(candidate.measurement) for candidate in evaluated]
            self.strategy.tell(drawn, merits)
            least = min(merits)
            if not best or least < best[0][0]:
                best = [(least, evaluated[merits.index(least)])]
            if least - self.record > HOPELESS * (max(merits) - least):
                self.strategy = None
            self.record = min(self.record, least)
        return best[0][1]

    def _point(self, problem: OptimizationProblem, position: Sequence[float]) -> Vector:
        values = [float(value) * self.scales[k] for k, value in zip(self.indices, position, strict=True)]
        return problem.space.clip(changed(self.base, zip(self.indices, values, strict=True)))


def save_evolution(path: Path, evolution: Evolution) -> None:
    """Write the evolution to a file, whole or not at all, whenever the process ends."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(pickle.dumps(evolution))
    temporary.replace(path)


def load_evolution(path: Path, indices: Sequence[int], size: int) -> Evolution | None:
    """Read the evolution that was kept; None if there is none, or it is damaged, or of other variables."""
    try:
        kept = pickle.loads(path.read_bytes())
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, TypeError, ValueError):
        return None
    same = isinstance(kept, Evolution) and list(kept.indices) == list(indices) and len(kept.base) == size
    return kept if same else None
