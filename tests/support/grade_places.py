"""The folders of a grade that a test starts itself, unsealed."""

from pathlib import Path

from attempts.record import Kind
from coral.grading.command import GradePlace
from coral.processes.seal import UNSEALED


def place_in(folder: Path, *, attempt: int = 17, kind: Kind = Kind.REAL) -> GradePlace:
    """Return the folders of a grade below this one: the checkout is `checkout`, the files of the grader are in
    `private`, the output of the grade is in `g`."""
    workspace, private = folder / "checkout", folder / "private"
    return GradePlace(
        workspace=workspace,
        private=private,
        folder=folder / "g",
        attempt=attempt,
        kind=kind,
        timeout=60,
        sandbox=UNSEALED,
    )
