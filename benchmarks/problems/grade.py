"""The grader of a problem: its score, strictly within the constraints. Each task has the NAME of its problem."""

import json
from pathlib import Path

from problems import strict_score

from coral.grader import Fail

NAME = "NAME"


def grade(workspace: Path) -> float:
    try:
        return float(strict_score(NAME, json.loads((workspace / "candidate.json").read_text(encoding="utf-8"))))
    except (KeyError, TypeError, ValueError) as problem:
        raise Fail(str(problem)) from problem
