"""The public check: a bound on the overlap, and how far every shift is from breaking it.

`check` reads `heights.json` from a folder. The score is `bound`; it holds while no slack is negative: the overlap at
every shift is at most `bound`, and no piece is higher than 1 once the area is 1. So a search over numbers has a smooth
score with constraints instead of a maximum. It computes in floating point; the grader is exact.
"""

from __future__ import annotations

import json
import sys
from operator import mul
from pathlib import Path


def read(folder: str) -> tuple[float, list[float]]:
    """The bound, and the heights scaled to area 1."""
    data = json.loads(Path(folder, "heights.json").read_text(encoding="utf-8"))
    heights = data["heights"]
    if not all(height >= 0 for height in heights):
        raise ValueError("a height is negative")
    scale = len(heights) / (2 * sum(heights))
    return data["bound"], [height * scale for height in heights]


def overlaps(heights: list[float]) -> list[float]:
    """The overlap with the complement at every shift by whole pieces."""
    count = len(heights)
    rest = [1 - height for height in heights]
    right = [sum(map(mul, heights[shift:], rest)) for shift in range(count)]
    left = [sum(map(mul, heights, rest[shift:])) for shift in range(1, count)]
    return [total * 2 / count for total in (*left[::-1], *right)]


def check(folder: str) -> dict[str, object]:
    """Return `{"score": bound, "slack": [of the overlap at each shift, then of each height]}`."""
    bound, heights = read(folder)
    slack = [bound - overlap for overlap in overlaps(heights)]
    return {"score": bound, "slack": slack + [1 - height for height in heights]}


if __name__ == "__main__":
    print(f"largest overlap: {max(overlaps(read(sys.argv[1] if len(sys.argv) > 1 else '.')[1])):.10f}")
