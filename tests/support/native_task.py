"""A task for native agents: eight points that repel each other in a box."""

import json
from pathlib import Path

CHECK = """import json, math, pathlib
def check(folder):
    rows = json.loads(pathlib.Path(folder, "points.json").read_text())["points"]
    points = [(row["x"], row["y"]) for row in rows]
    energy = sum(1 / (1e-3 + math.dist(a, b)) for k, a in enumerate(points) for b in points[:k])
    return {"score": energy, "slack": [gap for x, y in points for gap in (x, 1 - x, y, 1 - y)]}
"""
GRADE = """import json, math
def grade(workspace):
    rows = json.loads((workspace / "points.json").read_text())["points"]
    points = [(row["x"], row["y"]) for row in rows]
    assert all(0 <= v <= 1 for point in points for v in point)
    return sum(1 / (1e-3 + math.dist(a, b)) for k, a in enumerate(points) for b in points[:k])
"""
POINTS = {"points": [{"x": round(0.2 + 0.07 * k, 2), "y": round(0.3 + 0.01 * k * k, 2)} for k in range(8)]}


def write_task(folder: Path, check: str = CHECK, extra: str = "") -> Path:
    """Write the task; returns its folder. `check`: the text of the public check, empty for a task without one."""
    (folder / "seed").mkdir(parents=True)
    (folder / "seed" / "points.json").write_text(json.dumps(POINTS, indent=1))
    (folder / "seed" / "check.py").write_text(check)
    (folder / "grade.py").write_text(GRADE)
    line = "  check: check.py:check\n" if check else ""
    (folder / "task.yaml").write_text(
        f"task:\n  name: points\n  description: Spread the points.\n  editable: [points.json]\n{line}"
        "grader:\n  entry: grade.py:grade\n  direction: minimize\n  noise: 0\n"
        "run:\n  interrupt_grace: 1\n  terminate_grace: 0.5\n  backoff: 0.1\n" + extra
    )
    return folder
