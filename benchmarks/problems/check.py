"""The public check of a problem: what `problems.py` says of `candidate.json`. A task is made with its NAME."""

import json
from pathlib import Path

from problems import PROBLEMS

NAME = "NAME"


def check(folder: str) -> object:
    return PROBLEMS[NAME].score(json.loads(Path(folder, "candidate.json").read_text(encoding="utf-8")))
