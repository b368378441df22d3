"""How much the fuzz tests try, all in one place: thousands of cases in an ordinary run, and the same ones every time.

`TIMES=10 pytest -o timeout=0 tests/integration/fuzz/test_task.py` tries ten times as many, and others each time.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("TIMES", "1"))
CASES = {
    "task.yaml": {"something wrong": 600, "any text": 1200, "any bytes": 600, "overrides": 400},
    "submissions": {"any": 1200},
    "requests": {"any": 1000, "wishes for heartbeats": 300, "files of heartbeats": 100, "notes and skills": 50},
    "journals": {"histories": 50, "damage": 700, "no journal": 600},
}


def trying(kind: str, what: str) -> settings:
    """So many cases, each as slow as it likes: that says something of the machine, and nothing of us."""
    return settings(
        max_examples=CASES[kind][what] * TIMES,
        derandomize=TIMES == 1,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
