"""The public check of a problem: scores `candidate.json` by `problems.py`. Each task has the NAME of its problem."""

import json
from pathlib import Path

from problems import PROBLEMS

NAME = "NAME"


def check(folder: str) -> object:
    return PROBLEMS[NAME].score(json.loads(Path(folder, "candidate.json").read_text(encoding="utf-8")))
