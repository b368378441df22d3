"""The strict grader: how much further apart the two furthest of 16 points are than the two closest.

A file's numbers are 64-bit floats, and each float is a fraction; distances are squared, so that the ratio is a fraction
too. It is rounded once, at the end. Nothing that the candidate claims is believed, and nothing of it is executed.
"""

from fractions import Fraction
from itertools import combinations
from pathlib import Path

from coral.grader import Fail, Result, read_json

COUNT = 16
LARGEST = 65_536  # bytes of points.json; 16 points need less than 2,000
REACH = 1e6  # no coordinate is larger, which costs nothing: the ratio does not change with the scale

Point = tuple[Fraction, Fraction]


def grade(workspace: Path) -> Result:
    """The largest squared distance divided by the smallest, or a Fail that names what is wrong."""
    points = [point(row, number) for number, row in enumerate(rows(workspace / "points.json"))]
    pairs = {pair: squared_distance(points, pair) for pair in combinations(range(COUNT), 2)}
    closest, furthest = min(pairs, key=pairs.__getitem__), max(pairs, key=pairs.__getitem__)
    if pairs[closest] == 0:
        raise Fail(f"points {closest[0]} and {closest[1]} are the same")
    return Result(
        float(pairs[furthest] / pairs[closest]),
        metrics={"closest_pairs": near(pairs, closest), "furthest_pairs": near(pairs, furthest)},
        feedback=f"closest: points {closest[0]} and {closest[1]}; furthest: points {furthest[0]} and {furthest[1]}",
    )


def rows(path: Path) -> list[object]:
    """The points as they stand in the file. `bound` serves the public check alone and is not read."""
    data = read_json(path, LARGEST)
    if not isinstance(data, dict) or not set(data) <= {"bound", "points"} or not isinstance(data.get("points"), list):
        raise Fail('points.json must be {"bound": ..., "points": [...]}')
    if len(data["points"]) != COUNT:
        raise Fail(f"there are {len(data['points'])} points, not {COUNT}")
    return data["points"]


def point(row: object, number: int) -> Point:
    if not isinstance(row, dict) or set(row) != {"x", "y"}:
        raise Fail(f"point {number} must have x and y, and nothing else")
    for name in ("x", "y"):
        if not isinstance(row[name], float) or abs(row[name]) > REACH:
            raise Fail(f"{name} of point {number} is not a number from -{REACH:.0f} to {REACH:.0f}")
    return Fraction(row["x"]), Fraction(row["y"])


def squared_distance(points: list[Point], pair: tuple[int, int]) -> Fraction:
    (x, y), (u, v) = points[pair[0]], points[pair[1]]
    return (x - u) ** 2 + (y - v) ** 2


def near(pairs: dict[tuple[int, int], Fraction], extreme: tuple[int, int]) -> int:
    """How many pairs are as close, or as far apart, as the extreme one; nearly (1e-9) counts."""
    least, most = pairs[extreme] * (1 - Fraction(1, 10**9)), pairs[extreme] * (1 + Fraction(1, 10**9))
    return sum(least <= distance <= most for distance in pairs.values())
