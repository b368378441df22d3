"""How much the fuzz tests try, all in one place: hundreds of cases in an ordinary run, and the same ones every time.

`TIMES=10 pytest -o timeout=0 tests/integration/fuzz/test_task.py` tries ten times as many, and others each time.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("TIMES", "1"))
CASES = {
    "task.yaml": {"something wrong": 300, "any text": 600, "any bytes": 300, "overrides": 200},
    "submissions": {"any": 600},
    "requests": {"any": 500, "wishes for heartbeats": 150, "files of heartbeats": 50, "notes and skills": 25},
    "models": {"faults": 15, "deaths": 14},
    "journals": {"histories": 25, "damage": 350, "no journal": 300},
}


def trying(kind: str, what: str) -> settings:
    """Return the settings of a fuzz test: how many cases, without a deadline, because the speed of a case says
    something of the machine alone."""
    return settings(
        max_examples=CASES[kind][what] * TIMES,
        derandomize=TIMES == 1,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
