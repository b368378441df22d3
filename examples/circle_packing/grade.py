"""The strict grader: 26 circles in the unit square, judged by the numbers alone and without any tolerance.

A file's numbers are 64-bit floats, and each float is a fraction; the inequalities are decided in fractions, so that no
rounding forgives an overlap. Nothing of the candidate's is executed, and nothing else in the workspace is read.
"""

import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from coral.grader import Fail, Result, read_json

COUNT = 26
LARGEST = 65_536  # bytes of circles.json; 26 circles need less than 3,000
NAMES = {"x", "y", "r"}

Circle = tuple[Fraction, Fraction, Fraction]


def grade(workspace: Path) -> Result:
    """The sum of the radii, or a Fail that names the first constraint that is broken."""
    circles = [circle(row, number) for number, row in enumerate(rows(workspace / "circles.json"))]
    inside(circles)
    apart(circles)
    radii = [float(r) for _, _, r in circles]
    return Result(
        math.fsum(radii),
        metrics={"smallest_radius": min(radii), "largest_radius": max(radii), "contacts": contacts(circles)},
        feedback=f"smallest radius: circle {radii.index(min(radii))}; largest: circle {radii.index(max(radii))}",
    )


def rows(path: Path) -> list[object]:
    """The circles as they stand in the file: one list of 26."""
    data = read_json(path, LARGEST)
    if not isinstance(data, dict) or set(data) != {"circles"} or not isinstance(data["circles"], list):
        raise Fail('circles.json must be {"circles": [...]}')
    if len(data["circles"]) != COUNT:
        raise Fail(f"there are {len(data['circles'])} circles, not {COUNT}")
    return data["circles"]


def circle(row: object, number: int) -> Circle:
    """One circle in fractions, or a Fail that says what is wrong with it."""
    if not isinstance(row, dict) or set(row) != NAMES:
        raise Fail(f"circle {number} must have x, y and r, and nothing else")
    for name in ("x", "y", "r"):
        if not isinstance(row[name], float):
            raise Fail(f"{name} of circle {number} is not a finite number")
    if row["r"] <= 0.0:
        raise Fail(f"circle {number} has no positive radius")
    return Fraction(row["x"]), Fraction(row["y"]), Fraction(row["r"])


def inside(circles: list[Circle]) -> None:
    for number, (x, y, r) in enumerate(circles):
        gap = min(x - r, 1 - x - r, y - r, 1 - y - r)
        if gap < 0:
            raise Fail(f"circle {number} reaches {float(-gap):.3g} over the edge of the square")


def apart(circles: list[Circle]) -> None:
    for (i, one), (j, two) in combinations(enumerate(circles), 2):
        if squared_distance(one, two) < (one[2] + two[2]) ** 2:
            overlap = float(one[2] + two[2]) - math.sqrt(squared_distance(one, two))
            raise Fail(f"circles {i} and {j} overlap (by {overlap:.3g})")


def contacts(circles: list[Circle]) -> int:
    """How many pairs touch or nearly do (1e-9): a tight packing has about twice as many as circles."""
    near = Fraction(1, 10**9)
    return sum(squared_distance(a, b) <= (a[2] + b[2] + near) ** 2 for a, b in combinations(circles, 2))


def squared_distance(one: Circle, two: Circle) -> Fraction:
    return (one[0] - two[0]) ** 2 + (one[1] - two[1]) ** 2
