"""Gives every candidate the score 1, and notes when it was called, as both the begin and the end of the grade."""

import os
import time
from pathlib import Path


def grade(_: Path, attempt: int) -> float:
    now = str(time.time_ns())
    for moment in ("began", "ended"):
        Path(os.environ["BENCH_NOTES"], f"{moment}-{attempt}").write_text(now)
    return 1.0
