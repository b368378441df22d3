"""The grader. It runs outside the agents' reach, from a copy that is made when a run starts.

It trusts nothing in the workspace: it reads the parameters as data, checks them, and runs none of the candidate's code.
"""

import json
import math
from pathlib import Path

from coral.grader import Fail, Result

NAMES = ("amplitude", "decay", "frequency", "phase", "offset")


def grade(workspace: Path, private: Path) -> Result:
    """Score one attempt. `workspace` is a checkout of it; `private` holds this file and the hidden data."""
    parameters = read(workspace / "model.json")
    points = json.loads((private / "hidden.json").read_text())
    errors = [predict(parameters, t) - y for t, y in points]
    score = math.sqrt(sum(error * error for error in errors) / len(errors))
    worst = max(range(len(points)), key=lambda i: abs(errors[i]))
    # Feedback is read by the agents: say where it fails, without giving the hidden data away.
    early = points[worst][0] < points[-1][0] / 2
    return Result(
        score,
        metrics={"largest_error": round(abs(errors[worst]), 6)},
        feedback=f"the largest error lies in the {'first' if early else 'second'} half of the time",
    )


def read(path: Path) -> dict[str, float]:
    """The parameters, or a Fail that tells the agent what is wrong with them."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Fail(f"cannot read model.json: {error}") from error
    if not isinstance(data, dict) or sorted(data) != sorted(NAMES):
        raise Fail(f"model.json must hold exactly {', '.join(NAMES)}")
    for name, value in data.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
            raise Fail(f"{name} must be a number below a million")
    if data["decay"] < 0:
        raise Fail("decay must not be negative: the wave dies out")
    return data


def predict(p: dict[str, float], t: float) -> float:
    wave = math.sin(p["frequency"] * t + p["phase"])
    return p["amplitude"] * math.exp(-p["decay"] * t) * wave + p["offset"]
