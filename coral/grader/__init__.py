"""What a grader imports: `Result`, `Fail` and `Void` to answer with, `progress` to show that it is alive,
`run_candidate` to run code of the candidate where it can do no harm, `read_json` and `read_text` to read its files.
Graders of the other CORAL import `TaskGrader`.

A grader needs none of it: a function may return a number or a dict, a command may write a JSON file.
"""

import contextlib
import json
import math
import os
from datetime import UTC, datetime

from coral.types import Fail, Result, Void

TYPE_CHECKING = False  # as in typing, which few graders need
if TYPE_CHECKING:
    from coral.grader.candidate import Array, CandidateAnswer, run_candidate
    from coral.grader.files import read_json, read_text
    from coral.grader.task_grader import TaskGrader

Failed = Fail  # reads better where it is returned: `return Failed("circle 3 leaves the square")`
TTL = 120.0  # seconds for which a beat of a grader is a sign of life
_LONGEST = 300  # characters of a message: a beat is one write of less than 4 KiB

__all__ = ["Array", "CandidateAnswer", "Fail", "Failed", "Result", "TaskGrader", "Void", "progress", "read_json"]
__all__ += ["read_text", "run_candidate"]


def __getattr__(name: str) -> object:
    """Import a name when it is first used: these take milliseconds to import, and few graders need them."""
    if name in ("CandidateAnswer", "Array", "run_candidate"):
        from coral.grader import candidate

        return getattr(candidate, name)
    if name == "TaskGrader":
        from coral.grader.task_grader import TaskGrader

        return TaskGrader
    if name in ("read_json", "read_text"):
        from coral.grader import files

        return getattr(files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def progress(fraction: float | None, message: str = "") -> None:
    """Tell the supervisor how far the grade is, from 0 to 1 (None: unknown). Costs microseconds and never raises."""
    path = os.environ.get("CORAL_BEATS")
    if path:
        _append(path, json.dumps(_beat(fraction, message)) + "\n")


def _beat(fraction: float | None, message: str) -> dict[str, object]:
    known = fraction is not None and math.isfinite(fraction)
    return {
        "run": os.path.basename(os.environ.get("CORAL_RUN", "")),  # noqa: PTH119 - pathlib is slow to import
        "agent": f"#{os.environ.get('CORAL_ATTEMPT', '0')}",
        "launch": 1,
        "status": "running",
        "phase": "grading",
        "progress": min(1.0, max(0.0, float(fraction))) if fraction is not None and known else None,
        "message": " ".join(str(message).split())[:_LONGEST],
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "ttl": TTL,
    }


def _append(path: str, line: str) -> None:
    """Append a line by one write, so that lines of several processes do not mix."""
    with contextlib.suppress(OSError):  # a grade is worth more than its beats
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
