"""The strict grader: the overlap of a step function with its complement, at the worst shift, in exact integers.

A file's numbers are 64-bit floats, and each float is a fraction. All heights are brought to one denominator; then every
sum is a sum of integers, and is rounded once, at the end. Nothing that the candidate claims is believed.
"""

from fractions import Fraction
from math import lcm
from pathlib import Path

from coral.grader import Fail, Result, read_json

LARGEST = 65_536  # bytes of heights.json
MOST = 1000  # pieces: more cost a grade much time, and gain less than a part in a million
SMALLEST = 1e-15  # of a height that is not 0: it keeps the integers short


def grade(workspace: Path) -> Result:
    """The largest overlap, or a Fail that names what is wrong."""
    heights = normalised(read(workspace / "heights.json"))
    if max(heights) > 1:
        place = heights.index(max(heights))
        raise Fail(f"piece {place} is {float(max(heights)):.12g} high once the area is 1; no piece may be above 1")
    overlaps = overlaps_of(heights)
    largest = max(overlaps)
    worst = overlaps.index(largest) - (len(heights) - 1)
    equal = sum(overlap >= largest * (1 - Fraction(1, 10**9)) for overlap in overlaps)
    return Result(
        float(largest),
        metrics={"pieces": len(heights), "worst_shifts": equal},
        feedback=f"the overlap is largest at a shift of {worst} pieces; {equal} shifts are within 1e-9 of it",
    )


def read(path: Path) -> list[Fraction]:
    """The heights as they stand in the file. `bound` serves the public check alone and is not read."""
    data = read_json(path, LARGEST)
    if not isinstance(data, dict) or not set(data) <= {"bound", "heights"} or not isinstance(data.get("heights"), list):
        raise Fail('heights.json must be {"bound": ..., "heights": [...]}')
    if not 2 <= len(data["heights"]) <= MOST:
        raise Fail(f"there are {len(data['heights'])} heights, not 2 to {MOST}")
    for place, height in enumerate(data["heights"]):
        if not isinstance(height, float) or not (height == 0 or SMALLEST <= height <= 1 / SMALLEST):
            raise Fail(f"height {place} is neither 0 nor a number from {SMALLEST} to {1 / SMALLEST:.0e}")
    return [Fraction(height) for height in data["heights"]]


def normalised(heights: list[Fraction]) -> list[Fraction]:
    """The same shape with area 1: there are n pieces on [-1, 1], so that the heights add up to n/2."""
    total = sum(heights)
    if not total:
        raise Fail("all heights are 0")
    return [height * len(heights) / (2 * total) for height in heights]


def overlaps_of(heights: list[Fraction]) -> list[Fraction]:
    """The overlap of f(x) with 1 - f(x + k) at every shift k by whole pieces, from the leftmost to the rightmost.

    Between two of these shifts the overlap is linear, so that the largest is among them."""
    count, whole = len(heights), lcm(*(height.denominator for height in heights))
    inside = [int(height * whole) for height in heights]
    rest = [whole - height for height in inside]
    sums = [
        sum(inside[place + shift] * rest[place] for place in range(max(0, -shift), min(count, count - shift)))
        for shift in range(1 - count, count)
    ]
    return [Fraction(2 * total, count * whole * whole) for total in sums]
