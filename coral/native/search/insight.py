"""Finds what searches show of the problem: which values matter, what limits the best, what all new bests share.

Each finding is a sentence with its condition. Findings cost some evaluations of the check around the best attempt.
"""

from collections.abc import Sequence
from statistics import median

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.search_space.space import SearchSpace, Vector, changed
from coral.search_space.variables import VariableKind

STEP = 0.01  # of a variable's scale
MOST_STEPPED = 80  # variables that are stepped; of more, every second or third and so on
TIGHT = 1e-6  # a constraint with less slack than this is tight
NAMED = 3  # variables or constraints that a sentence names
FEWEST_BESTS = 3  # new bests, from which on a sentence about all of them means something
STANDS_OUT = 3.0  # times the median effect: a value that matters more than others


def findings(problem: OptimizationProblem, best: Vector, seed: Vector | None, bests: Sequence[Vector]) -> list[str]:
    """Return sentences on the problem around its best point. `bests`: the new bests, each better than the one before.

    Raises `TimeUp` when the problem's deadline passes.
    """
    here = problem.measured(best)
    if here.measurement.error:
        return []
    found = [*_limits(here.measurement.slack), *_what_matters(problem, here)]
    return [*found, *(_in_common(problem.space, seed, bests) if seed is not None else [])]


def _limits(slack: Sequence[float]) -> list[str]:
    tight = [f"slack[{number}]" for number, gap in enumerate(slack) if gap < TIGHT]
    named = f": {_named(tight)}" if tight else ""
    return [f"of the check's constraints {len(tight)} of {len(slack)} limit the score{named}"] if slack else []


def _what_matters(problem: OptimizationProblem, here: EvaluatedPoint) -> list[str]:
    """Say which variables change the merit most by a small step, up or down, and how many change nothing."""
    space, scales = problem.space, problem.space.scales([here.point])
    effects: list[tuple[float, str]] = []
    for k in range(0, len(space), 1 + len(space) // MOST_STEPPED):
        if space.variables[k].choices or space.variables[k].permutation:
            continue  # these have no small steps
        step = STEP * scales[k] if space.variables[k].kind is VariableKind.REAL else 1.0
        moved = [space.clip(changed(here.point, [(k, here.point[k] + way * step)])) for way in (1.0, -1.0)]
        merits = [
            problem.merit(measurement)
            for measurement in problem.measure([point for point in moved if point != here.point])
        ]
        losses = [abs(merit - problem.merit(here.measurement)) for merit in merits if merit < float("inf")]
        effects += [(max(losses), space.names[k])] if losses else []
    if len(effects) < 2:
        return []
    usual = median(effect for effect, _ in effects)
    most = [name for effect, name in sorted(effects, reverse=True)[:NAMED] if effect > STANDS_OUT * usual]
    idle = [name for effect, name in effects if effect == 0.0]
    out = [f"a small step changes over {STANDS_OUT:g} times as much as elsewhere in {_named(most)}"] if most else []
    return [*out, f"a small step changes nothing in {_named(idle)}"] if idle else out


def _in_common(space: SearchSpace, seed: Vector, bests: Sequence[Vector]) -> list[str]:
    """Say what all new bests change in the same way, and what none of them changes."""
    if len(bests) < FEWEST_BESTS:
        return []
    ways = [{(point[k] > seed[k]) - (point[k] < seed[k]) for point in bests} for k in range(len(space))]
    scales, last = space.scales([seed]), bests[-1]
    same = [k for k, way in enumerate(ways) if len(way) == 1 and way != {0}]
    same.sort(key=lambda k: -abs(last[k] - seed[k]) / scales[k])
    moved = [f"{space.names[k]} {'up' if last[k] > seed[k] else 'down'}" for k in same]
    kept = [space.names[k] for k, way in enumerate(ways) if way == {0}]
    out = [f"all {len(bests)} new bests move these the same way: {_named(moved)}"] if len(space) > len(same) > 0 else []
    return [*out, f"no new best changes {_named(kept)}"] if kept else out


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
