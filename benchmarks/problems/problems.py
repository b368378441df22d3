"""Eight optimisation problems of four kinds, as plain functions, which a task's check and the plain scripts both call.

A problem's candidate is one JSON object. Each problem is so large that a script does not always come to the best known
score within a minute: where everybody comes to it, nobody is better. Standard library only, because the file is copied
into the seed of a task.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

Data = dict[str, Any]
DATA = random.Random(20)  # draws the fixed figures below, the same ones every time


@dataclass(frozen=True)
class Problem:
    """One problem. `score`: returns a number; with constraints, `{"score": ..., "slack": [...]}`, which are met while
    no slack is negative."""

    kind: str
    maximize: bool
    start: Callable[[random.Random], Data]
    score: Callable[[Data], float | Data]


CHARGES, AXES = 60, (1.0, 1.5, 2.0)


def charges_start(chance: random.Random) -> Data:
    return {"angles": [[chance.uniform(0.3, 2.8), chance.uniform(0, 6.28)] for _ in range(CHARGES)]}


def charges_score(data: Data) -> float:
    """Return the electrostatic energy of equal charges on an ellipsoid, given by polar angle and azimuth."""
    a, b, c = AXES
    places = [
        (a * math.sin(t) * math.cos(p), b * math.sin(t) * math.sin(p), c * math.cos(t)) for t, p in data["angles"]
    ]
    return sum(1.0 / (math.dist(one, other) + 1e-9) for one, other in combinations(places, 2))


ATOMS = 19


def cluster_start(chance: random.Random) -> Data:
    return {"atoms": [[chance.uniform(-1.6, 1.6) for _ in range(3)] for _ in range(ATOMS)]}


def cluster_score(data: Data) -> float:
    """Return the Lennard-Jones energy of a cluster of atoms."""
    energy = 0.0
    for (x, y, z), (u, v, w) in combinations(data["atoms"], 2):
        inverse = 1.0 / ((x - u) ** 2 + (y - v) ** 2 + (z - w) ** 2 + 1e-9) ** 3
        energy += 4.0 * inverse * (inverse - 1.0)
    return energy


def rotation(size: int) -> list[list[float]]:
    """Return a random orthogonal matrix, by Gram-Schmidt."""
    rows: list[list[float]] = []
    while len(rows) < size:
        row = [DATA.gauss(0, 1) for _ in range(size)]
        for other in rows:
            shared = sum(map(float.__mul__, row, other))
            row = [a - shared * b for a, b in zip(row, other, strict=True)]
        length = math.hypot(*row)
        rows.append([a / length for a in row])
    return rows


WAVES, STAIRS = 25, 30
WAVES_TURN, STAIRS_TURN = rotation(WAVES), rotation(STAIRS)
WAVES_AT, STAIRS_AT = ([DATA.uniform(-2, 2) for _ in range(size)] for size in (WAVES, STAIRS))


def turned(values: Sequence[float], turn: Sequence[Sequence[float]], at: Sequence[float]) -> list[float]:
    away = [a - b for a, b in zip(values, at, strict=True)]
    return [sum(map(float.__mul__, row, away)) for row in turn]


def waves_start(chance: random.Random) -> Data:
    return {"values": [chance.uniform(-4, 4) for _ in range(WAVES)]}


def waves_score(data: Data) -> float:
    """Return the value of Rastrigin's function, shifted and rotated."""
    values = turned(data["values"], WAVES_TURN, WAVES_AT)
    return sum(10.0 + x * x - 10.0 * math.cos(2 * math.pi * x) for x in values)


def stairs_start(chance: random.Random) -> Data:
    return {"values": [chance.uniform(-4, 4) for _ in range(STAIRS)]}


def stairs_score(data: Data) -> float:
    """Return the value of a rotated ellipsoid that is constant on steps, where slopes do not help."""
    values = turned(data["values"], STAIRS_TURN, STAIRS_AT)
    stairs = [round(10 * x) / 10 if abs(x) < 0.5 else math.floor(x + 0.5) for x in values]
    bowl: float = sum(100 ** (k / (STAIRS - 1)) * x * x for k, x in enumerate(stairs))
    return bowl + 0.01 * sum(map(abs, values))


POINTS = 25


def points_start(chance: random.Random) -> Data:
    inside = [(chance.random(), chance.random()) for _ in range(20 * POINTS)]
    points = [[x, y] for x, y in inside if x + 0.8 * y < 0.99][:POINTS]
    return {"least": min(math.dist(one, other) for one, other in combinations(points, 2)) / 2, "points": points}


def points_score(data: Data) -> Data:
    """Return a bound on the least distance of points in a right-angled triangle, with a slack for each pair and
    edge."""
    least, points = data["least"], data["points"]
    slack = [gap for x, y in points for gap in (x, y, 1.0 - x - 0.8 * y)]
    slack += [math.dist(one, other) - least for one, other in combinations(points, 2)]
    return {"score": least, "slack": slack}


CENTRES = 16
PLACES = [(DATA.random(), DATA.random() * 0.7) for _ in range(120)]


def cover_start(chance: random.Random) -> Data:
    return {"centres": [[chance.random(), chance.random() * 0.7] for _ in range(CENTRES)]}


def cover_score(data: Data) -> float:
    """Return the largest distance of a place to its nearest centre."""
    centres = data["centres"]
    return max(min(math.dist(place, centre) for centre in centres) for place in PLACES)


BITS = 51


def sequence_start(chance: random.Random) -> Data:
    return {"sequence": [1, -1] + [chance.choice((-1, 1)) for _ in range(BITS - 2)]}


def sequence_score(data: Data) -> float:
    """Return the energy of the autocorrelations of a sequence of 1 and -1."""
    values = data["sequence"]
    if len(values) != BITS or any(value not in (-1, 1) for value in values):
        raise ValueError(f"the sequence must be {BITS} times 1 or -1")
    bits = sum(1 << k for k, value in enumerate(values) if value == 1)
    energy = 0
    for away in range(1, BITS):
        differing = ((bits ^ (bits >> away)) & ((1 << (BITS - away)) - 1)).bit_count()
        energy += (BITS - away - 2 * differing) ** 2
    return float(energy)


MACHINES = 36


@cache
def layout() -> tuple[list[list[float]], list[list[float]]]:
    chance = random.Random(7)
    at = [(chance.uniform(0, 10), chance.uniform(0, 10)) for _ in range(MACHINES)]
    flow = [[0.0] * MACHINES for _ in range(MACHINES)]
    for i, j in combinations(range(MACHINES), 2):
        flow[i][j] = flow[j][i] = float(chance.choice((0, 0, 0, 1, 2, 3, 5, 8)))
    return flow, [[math.dist(one, other) for other in at] for one in at]


def assignment_start(chance: random.Random) -> Data:
    return {"order": chance.sample(range(MACHINES), MACHINES)}


def assignment_score(data: Data) -> float:
    """Return the distance that goods travel if machine k stands at place order[k]: a quadratic assignment."""
    order = data["order"]
    if sorted(order) != list(range(MACHINES)):
        raise ValueError(f"order must hold each of 0 to {MACHINES - 1} once")
    flow, away = layout()
    cost = 0.0
    for row, place in zip(flow, order, strict=True):
        distances = away[place]
        cost += sum([goods * distances[other] for goods, other in zip(row, order, strict=True) if goods])
    return cost / 2


PROBLEMS = {
    "charges": Problem("smooth", False, charges_start, charges_score),
    "cluster": Problem("smooth", False, cluster_start, cluster_score),
    "waves": Problem("rough", False, waves_start, waves_score),
    "stairs": Problem("rough", False, stairs_start, stairs_score),
    "points": Problem("max-min", True, points_start, points_score),
    "cover": Problem("max-min", False, cover_start, cover_score),
    "sequence": Problem("discrete", False, sequence_start, sequence_score),
    "assignment": Problem("discrete", False, assignment_start, assignment_score),
}


def strict_score(name: str, data: Data) -> float:
    """Return the score of a candidate. ValueError if it breaks a constraint."""
    result = PROBLEMS[name].score(data)
    score, slack = (result["score"], result["slack"]) if isinstance(result, dict) else (result, [])
    if not math.isfinite(score) or min(slack, default=0.0) < 0.0:
        raise ValueError("a constraint is broken, or the score is not a number")
    return float(score)
