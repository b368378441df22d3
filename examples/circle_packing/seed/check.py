"""The public check: the sum of radii, and how far every constraint is from being broken.

`check` reads `circles.json` from a folder. Each entry of `slack` is one constraint, met when it is not negative.
It computes in floating point; the grader is exact. Stay a hair (1e-12) inside and both agree.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from math import hypot
from pathlib import Path

COUNT = 26


def check(folder: str) -> dict[str, object]:
    """Return `{"score": sum of radii, "slack": [wall gaps, then gaps between circles]}`."""
    rows = json.loads(Path(folder, "circles.json").read_text(encoding="utf-8"))["circles"]
    circles = [(row["x"], row["y"], row["r"]) for row in rows]
    if len(circles) != COUNT:
        raise ValueError(f"{len(circles)} circles, not {COUNT}")
    slack = [gap for x, y, r in circles for gap in (x - r, 1 - x - r, y - r, 1 - y - r, r)]
    slack += [hypot(x - u, y - v) - r - s for (x, y, r), (u, v, s) in combinations(circles, 2)]
    return {"score": sum(r for _, _, r in circles), "slack": slack}


if __name__ == "__main__":
    result = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    worst = min(result["slack"])  # type: ignore[call-overload]
    print(f"sum of radii {result['score']:.10f}, smallest slack {worst:.3e} ({'ok' if worst >= 0 else 'BROKEN'})")
