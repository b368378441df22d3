"""A plain script, as one writes it in an afternoon: scipy, cma or annealing on a problem's function, for some time.

`python script.py NAME SEED BEGAN SECONDS` prints a line `seconds score` for each better candidate that is strictly
within the constraints. BEGAN is a time of the monotonic clock, so that the start of the script counts as well.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from problems import PROBLEMS, Data, strict_score


class Search:
    """Handles candidates as vectors, and keeps the best cost so far. A search ends by `TimeoutError`."""

    def __init__(self, name: str, seed: int, began: float, seconds: float) -> None:
        self.name, self.problem, self.began, self.seconds = name, PROBLEMS[name], began, seconds
        self.random = random.Random(seed)
        self.best = math.inf

    def start(self) -> list[float]:
        return list(_flat(self.problem.start(self.random)))

    def data(self, vector: Sequence[float]) -> Data:
        values = iter(vector)
        return {key: _shaped(value, values) for key, value in self.problem.start(random.Random(0)).items()}

    def cost(self, vector: Sequence[float]) -> float:
        """Return the cost of a candidate of an unconstrained problem, and print it if it is the best. TimeoutError when
        the time is over."""
        self.look_at_the_clock()
        cost = float(self.problem.score(self.data(vector)))
        if cost < self.best:
            self.best = cost
            print(f"{time.monotonic() - self.began:.3f} {cost!r}", flush=True)
        return cost

    def keep(self, vector: Sequence[float]) -> None:
        """Print the score of a candidate of a constrained problem, if it is strictly feasible and the best."""
        try:
            score = strict_score(self.name, self.data(vector))
        except ValueError:
            return
        if -score < self.best:
            self.best = -score
            print(f"{time.monotonic() - self.began:.3f} {score!r}", flush=True)

    def look_at_the_clock(self) -> None:
        if time.monotonic() - self.began > self.seconds:
            raise TimeoutError


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _shaped(value: Any, values: Any) -> Any:
    return [_shaped(item, values) for item in value] if isinstance(value, list) else next(values)


def hop(search: Search) -> None:
    """Search by basin hopping with L-BFGS-B, from one start after the other."""
    from scipy.optimize import basinhopping

    while True:
        options = {"method": "L-BFGS-B", "options": {"maxiter": 2000}}
        seed = search.random.randrange(1 << 30)
        basinhopping(search.cost, search.start(), niter=60, stepsize=0.4, minimizer_kwargs=options, seed=seed)


def descend(search: Search) -> None:
    """Search by L-BFGS-B from one start after the other."""
    from scipy.optimize import minimize

    while True:
        minimize(search.cost, search.start(), method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 10**6})


def evolve(search: Search) -> None:
    """Search by CMA-ES with restarts and growing populations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma
    spread = 0.2 if search.name == "cover" else 2.0
    while True:
        options = {"verbose": -9, "seed": search.random.randrange(1, 1 << 30)}
        cma.fmin2(search.cost, search.start(), spread, options, restarts=6, bipop=True)


def spread_points(search: Search) -> None:
    """Search by SLSQP on the least distance and its constraints, from one start after the other."""
    import numpy as np
    from scipy.optimize import minimize

    def gaps(vector: Any) -> Any:
        search.look_at_the_clock()
        return np.array(search.problem.score(search.data(vector.tolist()))["slack"]) - 1e-9

    constraints = {"type": "ineq", "fun": gaps}
    while True:
        found = minimize(lambda vector: -vector[0], search.start(), method="SLSQP", constraints=constraints)
        search.keep(found.x.tolist())


def anneal(search: Search) -> None:
    """Search by simulated annealing, with flips of one value or exchanges of two, from hot to cold, again and again."""
    steps = 20_000
    while True:
        current = search.start()
        cost = search.cost(current)
        hot = 0.05 * cost
        for step in range(steps):
            temperature = hot * (1e-3 ** (step / steps))
            i, j = search.random.sample(range(len(current)), 2)
            tried = list(current)
            if search.name == "sequence":
                tried[i] = -tried[i]
            else:
                tried[i], tried[j] = tried[j], tried[i]
            after = search.cost(tried)
            if after <= cost or search.random.random() < math.exp((cost - after) / temperature):
                current, cost = tried, after


METHODS: dict[str, Callable[[Search], None]] = {
    "charges": descend,
    "cluster": hop,
    "waves": evolve,
    "stairs": evolve,
    "points": spread_points,
    "cover": evolve,
    "sequence": anneal,
    "assignment": anneal,
}


def main() -> None:
    name, seed, began, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    search = Search(name, seed, began, seconds)
    with contextlib.suppress(TimeoutError):
        METHODS[name](search)


if __name__ == "__main__":
    main()
