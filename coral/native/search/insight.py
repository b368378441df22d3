"""Finds what searches show of the problem: which values matter, what limits the best, what all new bests share.

Each finding is a sentence with its condition. Findings cost some evaluations of the check around the best attempt.
"""

from collections.abc import Sequence
from statistics import median

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.native.search.numeric.space import SearchSpace, Vector
from coral.native.search.numeric.variables import VariableKind

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
    found = [*_limits(here), *_what_matters(problem, here)]
    return [*found, *(_in_common(problem.space, seed, bests) if seed is not None else [])]


def _limits(here: EvaluatedPoint) -> list[str]:
    slack = here.measurement.slack
    if not slack:
        return []
    tight = [number for number, gap in enumerate(slack) if gap < TIGHT]
    if not tight:
        if len(slack) == 1:
            return ["the constraint of the check is not tight: it does not limit the score here"]
        return [f"none of the {len(slack)} constraints of the check is tight: they do not limit the score here"]
    if len(slack) == 1:
        return ["the constraint of the check is tight and limits the score (slack[0])"]
    named = ", ".join(f"slack[{number}]" for number in tight[:NAMED]) + (", ..." if len(tight) > NAMED else "")
    which = "is tight and limits" if len(tight) == 1 else "are tight and limit"
    return [f"{len(tight)} of the {len(slack)} constraints of the check {which} the score ({named})"]


def _what_matters(problem: OptimizationProblem, here: EvaluatedPoint) -> list[str]:
    """Say which variables change the merit most by a small step, up or down, and how many change nothing."""
    space = problem.space
    scales = space.scales([here.point])
    stepped = range(0, len(space), 1 + len(space) // MOST_STEPPED)
    effects: list[tuple[float, int]] = []
    for k in stepped:
        moved = [_stepped(space, here.point, k, way * scales[k]) for way in (STEP, -STEP)]
        merits = [problem.merit(measured) for measured in problem.measure([point for point in moved if point])]
        losses = [abs(merit - problem.merit(here.measurement)) for merit in merits if merit < float("inf")]
        effects += [(max(losses), k)] if losses else []
    if len(effects) < 2:
        return []
    largest, usual = sorted(effects, reverse=True), median(effect for effect, _ in effects)
    out = []
    if largest[0][0] > STANDS_OUT * usual:
        first = [space.names[k] for effect, k in largest[:NAMED] if effect > STANDS_OUT * usual]
        matter = "matters" if len(first) == 1 else "matter"
        more_than = f"{STANDS_OUT:g} times as much as one elsewhere"
        out.append(f"{', '.join(first)} {matter} most: a small step there changes more than {more_than}")
    idle = [space.names[k] for effect, k in effects if effect == 0.0]
    if idle:
        more = ", ..." if len(idle) > NAMED else ""
        out.append(f"{len(idle)} values change nothing by a small step ({', '.join(idle[:NAMED])}{more})")
    return out


def _stepped(space: SearchSpace, point: Vector, k: int, step: float) -> Vector:
    """Return the point after a small step of one variable; empty if there is none: choices and orders have none."""
    moved = list(point)
    variable = space.variables[k]
    if variable.choices or variable.permutation:
        return []
    moved[k] += step if variable.kind is VariableKind.REAL else (1.0 if step > 0 else -1.0)
    moved = space.clip(moved)
    return moved if moved[k] != point[k] else []


def _in_common(space: SearchSpace, seed: Vector, bests: Sequence[Vector]) -> list[str]:
    """Say what all new bests change in the same way, and what none of them changes."""
    if len(bests) < FEWEST_BESTS:
        return []
    ways = [{(point[k] > seed[k]) - (point[k] < seed[k]) for point in bests} for k in range(len(space))]
    same = [k for k, way in enumerate(ways) if len(way) == 1 and way != {0}]
    kept = [k for k, way in enumerate(ways) if way == {0}]
    scales = space.scales([seed])
    same.sort(key=lambda k: -abs(bests[-1][k] - seed[k]) / scales[k])
    out = []
    if same and len(same) < len(space):
        named = ", ".join(f"{space.names[k]} {'up' if bests[-1][k] > seed[k] else 'down'}" for k in same[:NAMED])
        more = f" and {len(same) - NAMED} more" if len(same) > NAMED else ""
        out.append(f"all {len(bests)} new bests move the same {len(same)} values the same way: {named}{more}")
    if kept:
        named = ", ".join(space.names[k] for k in kept[:NAMED])
        out.append(f"no new best changes {named}" + (f" and {len(kept) - NAMED} more" if len(kept) > NAMED else ""))
    return out
