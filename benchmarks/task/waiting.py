"""Gives every candidate the score 1, some seconds after the file `release` is among the notes. Notes when it began and
when it ended."""

import os
import time
from pathlib import Path


def grade(_: Path, attempt: int, args: dict[str, float]) -> float:
    notes = Path(os.environ["BENCH_NOTES"])
    if attempt:
        _note(notes / f"began-{attempt}")
        while not (notes / "release").exists():
            time.sleep(0.01)
        time.sleep(args["seconds"])
        _note(notes / f"ended-{attempt}")
    return 1.0


def _note(path: Path) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(str(time.time_ns()))
    unfinished.replace(path)
