"""What a grading process of a run reports: its progress while it runs, and its result when it has ended."""

import os

from attempts.files import open_plain, parse_object
from coral.fleet import events as on
from coral.grading.command import BEATS, RESULT
from coral.grading.result import read_result
from heartbeats.beat import Beat
from heartbeats.beat import from_dict as beat_from_dict
from workspace.layout import Layout

LONGEST_BEAT = 4096  # bytes


def graded_event(layout: Layout, number: int, launch: int, code: int | None, seconds: float) -> on.Graded:
    """The result of an ended grading process. Its checkout stays: removing it takes too long for the loop.

    `code` is None where nobody saw the exit: then a result that is there is taken, and otherwise the grade is lost.
    """
    folder = layout.grading(number)
    lost = on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
    if code is None and not (folder / RESULT).exists():
        return lost
    result = read_result(folder, code or 0)
    if code is None and result.outcome is on.Outcome.CRASHED:
        return lost
    return on.Graded(
        number=number,
        launch=launch,
        outcome=result.outcome,
        score=result.score,
        reason=result.reason,
        feedback=result.feedback,
        metrics=result.metrics,
        seconds=round(seconds, 3),
    )


def progress_of(layout: Layout, number: int) -> Beat | None:
    """The last beat that the grader of a running grade reported; None while there is no readable one."""
    try:
        with open_plain(layout.grading(number) / BEATS) as file:  # a candidate may reach the file, too
            file.seek(max(os.fstat(file.fileno()).st_size - LONGEST_BEAT, 0))
            lines = file.read(LONGEST_BEAT).splitlines()
        return beat_from_dict(parse_object(lines[-1])) if lines else None
    except (OSError, ValueError):
        return None
