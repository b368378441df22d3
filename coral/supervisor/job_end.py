"""Reads how a job ended: its exit code, which its shell has written to a file, and the last lines of its output."""

import os
import time
from pathlib import Path

from attempts.fields import one_line
from attempts.files import open_plain, read_end
from coral.fleet import events as on
from coral.fleet.run_state import Job
from workspace.layout import Layout

LAST_BYTES, LAST_LINES, LINE_LENGTH = 8192, 12, 200
SIGNALLED, MAX_SIGNAL = 128, 64  # what a shell adds to the number of the signal that ended a command


def read_job_end(layout: Layout, job: Job, code: int | None, *, watched: bool = True) -> on.JobEnded:
    """Return the end of a job whose whole process tree is gone. `code`: its exit code as the supervisor saw it; None if
    the supervisor is not its parent. `watched`: False if it ended while nobody supervised."""
    output = layout.job_output(job.agent, job.number)
    seen = os.path.relpath(output, layout.clone(job.agent))
    kept, ago = _written_code(layout.job_code(job.agent, job.number))
    code = code if kept is None else kept
    if code is not None and SIGNALLED < code <= SIGNALLED + MAX_SIGNAL:
        code = SIGNALLED - code
    last = _last_lines(output)
    return on.JobEnded(number=job.number, code=code, last_lines=last, output=seen, ago=0.0 if watched else ago)


def _written_code(path: Path) -> tuple[int | None, float]:
    """Return the exit code that the job's shell has written, or None, and how many seconds ago it was written."""
    try:
        with open_plain(path) as file:
            return int(file.read(8)), max(time.time() - os.fstat(file.fileno()).st_mtime, 0.0)
    except (OSError, ValueError):
        return None, 0.0


def _last_lines(output: Path) -> tuple[str, ...]:
    """Return the last lines of a file, without empty ones. Of a line with carriage returns, the text after the last
    one."""
    text = read_end(output, LAST_BYTES).decode(errors="replace")
    lines = (one_line(line.rstrip("\r").rpartition("\r")[2], LINE_LENGTH) for line in text.split("\n"))
    return tuple(line for line in lines if line.strip())[-LAST_LINES:]
