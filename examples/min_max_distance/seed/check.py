"""The public check: a bound on the ratio of squared distances, and how far every pair is from breaking it.

`check` reads `points.json` from a folder. The score is `bound`; it holds while no slack is negative: no two points are
closer than 1, and none further apart than the root of `bound`. So a search over numbers has a smooth score with
constraints instead of a largest and a smallest distance, which change places.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path


def check(folder: str) -> dict[str, object]:
    """Return `{"score": bound, "slack": [of the smallest distance, then of the largest]}`."""
    data = read(folder)
    bound, distances = data["bound"], squared_distances(data["points"])
    return {"score": bound, "slack": [d - 1 for d in distances] + [bound - d for d in distances]}


def read(folder: str) -> dict:
    return json.loads(Path(folder, "points.json").read_text(encoding="utf-8"))


def squared_distances(rows: list[dict[str, float]]) -> list[float]:
    """The squared distance of each pair."""
    points = [(row["x"], row["y"]) for row in rows]
    return [(x - u) ** 2 + (y - v) ** 2 for (x, y), (u, v) in combinations(points, 2)]


if __name__ == "__main__":
    distances = squared_distances(read(sys.argv[1] if len(sys.argv) > 1 else ".")["points"])
    print(f"largest / smallest squared distance: {max(distances) / min(distances):.10f}")
