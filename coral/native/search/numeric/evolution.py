"""The evolution strategy CMA-ES, for rough problems: it needs only the order of each generation's merits."""

import warnings
from collections.abc import Sequence
from random import Random

import numpy as np

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem

FIRST_STEP = 0.2  # in scales
MOST_CORRELATED = 100  # variables between which correlations are learned; with more, that takes longer than it helps
LARGER = (1, 2, 4, 8)  # a generation is so many times the usual: more candidates see over more local optima


def evolve(
    problem: OptimizationProblem,
    start: EvaluatedPoint,
    indices: Sequence[int],  # of the variables that it may change
    scales: Sequence[float],
    random: Random,
) -> EvaluatedPoint:
    """Generations until none promises more; the best point met."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it cannot plot
        import cma  # here: it takes as long to import as all the rest

    def merit(evaluated: EvaluatedPoint) -> float:
        return problem.merit(evaluated.measurement)

    def moved(position: Sequence[float]) -> list[float]:
        point = list(start.point)
        for k, value in zip(indices, position, strict=True):
            point[k] = float(value) * scales[k]
        return problem.space.clip(point)

    chance, best = np.random.default_rng(random.getrandbits(64)), start
    count = len(indices)
    options = {
        "popsize": (4 + int(3 * np.log(count))) * random.choice(LARGER),
        "CMA_diagonal": count > MOST_CORRELATED,
        "randn": lambda *shape: chance.standard_normal(shape),
        "seed": np.nan,  # nothing is drawn from generators that others use
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy([start.point[k] / scales[k] for k in indices], FIRST_STEP, options)
    while not strategy.stop():
        drawn = strategy.ask()
        evaluated = problem.evaluate(*map(moved, drawn))
        merits = [merit(candidate) for candidate in evaluated]
        strategy.tell(drawn, merits)
        best = min(best, *evaluated, key=merit)
    return best
