"""Discrete search: annealing and tabu search over integers, choices and permutations.

A neighbour differs by one choice, by one integer, or by an exchange within a permutation. If the check rejects some of
these, two values of a column may be exchanged as well. Neighbours are measured many at a time, because asking the check
for one costs more than its answer.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, exp, inf
from random import Random
from statistics import median_high

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.search_space.space import SearchSpace, Vector, changed

MOST_NEIGHBOURS = 600  # that a step of tabu search measures; of more, this many are drawn
WALKS = (2, 4, 8, 16, 32)  # steps of a tabu search without a new best, per variable, before it ends
HOT, COLD = 0.5, 5e-3  # temperatures of annealing, in typical losses of a neighbour
REHEATS = (0.1, 0.2, 0.5)  # hottest temperatures from near an optimum: lower ones keep most of it
FEW_BETTER = 0.1  # of the neighbours: near an optimum at most so many are better
SAMPLED = 60  # neighbours that are measured to find a typical loss
USABLE = 0.3  # times as many neighbours as of the best kind of change must be valid for another kind to be chosen
ALIKE = 1.3  # times the least change of the score by a kind of changes, up to which another kind is as good
STEP_SHARE = 0.1  # of the search's time, for the neighbours of one step, or to find the typical loss of a kind
SPECULATIVE = 64  # the most neighbours that annealing measures at a time; it takes the first that it accepts
FEWER = 0.5  # of them are measured after a batch with one that it accepts
MORE, LEAST_MORE = 1.2, 0.25  # times as many, and so many more, after a batch without
SHARES = (0.2, 0.4, 0.97)  # of the time that is left, for one annealing
FEWEST_STEPS = 200  # an annealing that would have time for fewer takes all the time that is left
CODED = 0.5  # probability that an integer whose values look like codes gets another code; else it moves a step
MOST_EXCHANGES = 0.5  # of the neighbours that annealing draws, however many others the check rejects
EXCHANGE, REVERSE, MOVE = "exchange", "reverse", "move"

Change = tuple[tuple[int, float], ...]  # variables and their new values


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Makes neighbours of points: changes of one value, or exchanges of two values of a column. `exchanges`: the
    probability that `draw` makes an exchange; if it is above 0, `all` includes exchanges. An exchange keeps a sum or a
    count that the check demands. `kind`: how `draw` changes permutations: two values exchanged, a piece reversed, or a
    value moved."""

    space: SearchSpace
    random: Random
    exchanges: float = 0.0
    kind: str = EXCHANGE

    def all(self, point: Vector, most: int = MOST_NEIGHBOURS) -> list[Change]:
        """Return every neighbour, or `most` of them at random."""
        changes: list[Change] = []
        for k in self.space.discrete:
            variable = self.space.variables[k]
            if not variable.permutation:
                around = () if variable.choices else (point[k] - 1, point[k] + 1)
                steps = (v for v in around if variable.low <= v <= variable.high)
                changes += [((k, v),) for v in sorted({*self._other_values(point, k), *steps})]
        if self.exchanges:
            drawn = [self._draw_exchange(point, change[0][0]) for change in changes]
            changes += [change for change in drawn if change]
        total = len(changes) + sum(comb(len(group), 2) for group in self.space.permutations)
        chosen = range(total) if total <= most else self.random.sample(range(total), most)
        return [changes[k] if k < len(changes) else self._exchange(point, k - len(changes)) for k in chosen]

    def _exchange(self, point: Vector, number: int) -> Change:
        """Return one of the exchanges within permutations, which are numbered: making them all takes long."""
        for group in self.space.permutations:
            pairs = comb(len(group), 2)
            if number < pairs:
                break
            number -= pairs
        shift, first = divmod(number, len(group))  # round the group, so that each pair stands once
        i, j = group[first], group[(first + shift + 1) % len(group)]
        return ((i, point[j]), (j, point[i]))

    def draw(self, point: Vector) -> Change:
        k = self.random.choice(self.space.discrete)
        variable = self.space.variables[k]
        if variable.permutation:
            return self._draw_order(point, self.space.permutation_of[k])
        if self.exchanges and self.random.random() < self.exchanges and (exchange := self._draw_exchange(point, k)):
            return exchange
        values = self._other_values(point, k)
        if values and (variable.choices or self.random.random() < CODED):
            return ((k, self.random.choice(values)),)
        step = self.random.choice((-1, 1)) * max(1, round(self.random.expovariate(0.7)))
        moved = min(max(point[k] + step, variable.low), variable.high)
        return ((k, moved if moved != point[k] else min(max(point[k] - step, variable.low), variable.high)),)

    def _draw_exchange(self, point: Vector, k: int) -> Change:
        """Return the change that exchanges the values of variable k and of a random variable of its column; an empty
        change if all of them have the same value."""
        others = [other for other in self.space.columns[self.space.column_of[k]] if point[other] != point[k]]
        if not others:
            return ()
        other = self.random.choice(others)
        return ((k, point[other]), (other, point[k]))

    def _other_values(self, point: Vector, k: int) -> list[float]:
        """Return the values to which variable `k` can be changed at once: the other choices, or, if it is an integer,
        the other codes of its column that are within its bounds."""
        variable = self.space.variables[k]
        if variable.choices:
            return [float(choice) for choice in range(len(variable.choices)) if choice != point[k]]
        codes = self.space.codes[self.space.column_of[k]]
        return [code for code in codes if code != point[k] and variable.low <= code <= variable.high]

    def _draw_order(self, point: Vector, group: Sequence[int]) -> Change:
        i, j = sorted(self.random.sample(range(len(group)), 2))
        values = [point[k] for k in group[i : j + 1]]
        if self.kind == REVERSE:
            values.reverse()
        elif self.kind == MOVE:
            values = [*values[1:], values[0]] if self.random.random() < 0.5 else [values[-1], *values[:-1]]
        else:
            values[0], values[-1] = values[-1], values[0]
        return tuple(zip(group[i : j + 1], values, strict=True))


def draw_anew(space: SearchSpace, point: Vector, share: float, random: Random) -> Vector:
    """Return the point after random changes, as many as `share` of its integers, choices and ordered values."""
    neighbours = Neighbourhood(space, random)
    for _ in range(max(2, round(share * len(space.discrete)))):
        point = changed(point, neighbours.draw(point))
    return point


def search_by_tabu(problem: OptimizationProblem, start: EvaluatedPoint, random: Random) -> EvaluatedPoint:
    """Return the best point of a tabu search: each step goes to the best neighbour that is not forbidden, even if that
    is worse, and forbids the values that it changes for a while. The search ends after many steps without a new
    best."""
    neighbours, count = Neighbourhood(problem.space, random), len(problem.space.discrete)
    patience, tabu = count * random.choice(WALKS), dict[tuple[int, float], int]()
    current = best = start
    step = since = 0
    while since < patience:
        step, since = step + 1, since + 1
        changes = neighbours.all(current.point, int(min(MOST_NEIGHBOURS, problem.affordable(STEP_SHARE))))
        if not changes:
            break
        measured = problem.evaluate(*(changed(current.point, change) for change in changes))
        merits = [problem.merit(neighbour.measurement) for neighbour in measured]
        record = problem.merit(best.measurement)
        allowed = [
            k
            for k, change in enumerate(changes)
            if merits[k] < record or any(tabu.get(item, 0) < step for item in change)
        ] or range(len(changes))
        least = min(merits[k] for k in allowed)
        if least == inf and neighbours.exchanges:
            break
        neighbours = replace(neighbours, exchanges=merits.count(inf) / len(merits))
        if least == inf:
            continue  # the next step also tries exchanges
        taken = random.choice([k for k in allowed if merits[k] == least])
        for k, _ in changes[taken]:
            tabu[k, current.point[k]] = step + _tenure(len(changes[taken]), count, random)
        current = measured[taken]
        if least < record:
            best, since = current, 0
    return best


def _tenure(size: int, count: int, random: Random) -> int:
    """Return for how many steps a value is forbidden: about the number of variables for an exchange, a tenth or two of
    it for a single choice (the usual figures)."""
    return round(count * random.uniform(0.9, 1.1)) if size > 1 else 1 + round(count * random.uniform(0.1, 0.2))


def anneal(problem: OptimizationProblem, start: EvaluatedPoint, random: Random, seconds: float) -> EvaluatedPoint:
    """Return the best point of simulated annealing, which accepts worse neighbours less and less often. If it starts
    near an optimum, its first temperature is mostly low, so that it does not leave the optimum far behind. `seconds`:
    the time that is left."""
    until = time.monotonic() + seconds
    neighbours, loss, better = sample_neighbours(problem, start, random)
    hot = random.choice(REHEATS) if better <= FEW_BETTER else HOT
    share, began = random.choice(SHARES), time.monotonic()
    if problem.affordable(share) < FEWEST_STEPS:
        share = 1.0
    current = best = start
    at_a_time = 1.0
    # The clock sets the temperature: how many measurements become steps is not known before.
    while (cooled := (time.monotonic() - began) / (share * max(until - began, 1e-9))) < 1.0:
        drawn = [changed(current.point, neighbours.draw(current.point)) for _ in range(int(at_a_time))]
        here, temperature = problem.merit(current.measurement), loss * hot * (COLD / hot) ** cooled
        for neighbour in problem.evaluate(*drawn):
            after = problem.merit(neighbour.measurement)
            if after < inf and (after <= here or random.random() < exp((here - after) / temperature)):
                current = neighbour
                best = min(best, current, key=lambda point: problem.merit(point.measurement))
                at_a_time = max(1.0, FEWER * at_a_time)
                break
        else:
            at_a_time = min(SPECULATIVE, LEAST_MORE + MORE * at_a_time)
    return best


def sample_neighbours(
    problem: OptimizationProblem, start: EvaluatedPoint, random: Random
) -> tuple[Neighbourhood, float, float]:
    """Measure neighbours of every kind and choose a kind. Return these neighbours, by how much one of them is typically
    worse than the point (the median of those that are worse, in merit), and the share of them that are better.

    The kind is one of those that change the score least: a piece of a tour that is reversed keeps nearly all of the
    way, and two machines that are exchanged keep most distances. No kind is chosen of which the check rejects far more
    neighbours than of another."""
    kinds = (EXCHANGE, REVERSE, MOVE) if problem.space.permutations else (EXCHANGE,)
    count = int(min(SAMPLED, problem.affordable(STEP_SHARE)))
    here = problem.merit(start.measurement)
    sampled = dict[str, list[float]]()  # the merit of each neighbour that the check accepts, minus that of the point
    for kind in kinds:
        neighbours = Neighbourhood(problem.space, random, kind=kind)
        drawn = [changed(start.point, neighbours.draw(start.point)) for _ in range(count)]
        merits = [problem.merit(neighbour.measurement) for neighbour in problem.evaluate(*drawn)]
        sampled[kind] = [merit - here for merit in merits if merit < inf]
    most = max(map(len, sampled.values()))
    usable = [kind for kind in kinds if len(sampled[kind]) >= USABLE * most]
    sizes = {kind: sum(map(abs, sampled[kind])) / max(1, len(sampled[kind])) for kind in usable}
    kind = random.choice([kind for kind in usable if sizes[kind] <= ALIKE * min(sizes.values())])
    losses = [difference for difference in sampled[kind] if difference > 0.0]
    exchanges = min(1.0 - len(sampled[kind]) / count, MOST_EXCHANGES)
    better = sum(difference < 0.0 for difference in sampled[kind]) / max(1, len(sampled[kind]))
    return Neighbourhood(problem.space, random, exchanges, kind), median_high(losses) if losses else 1.0, better
