"""A job beside the fleet: its program, its record for agents and people to read, and the last words of its output.

The record is a view. One that still says that a job runs, of which the fleet knows nothing more, is put right when the
run is resumed.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from attempts.fields import one_line
from attempts.files import open_plain, parse_object, read_bytes, write_json
from coral.agent_setup.command import environment_of
from coral.fleet import events as on
from coral.fleet.actions import ShowJob
from coral.fleet.agent_state import JobEnd
from coral.fleet.reasons import JobOutcome
from coral.fleet.run_state import Job
from coral.processes.process import Program
from coral.supervisor.context import RunContext
from coral.views.reasons import outcome_text, reason_data
from workspace.layout import Layout

LAST_BYTES, LAST_LINES, LINE_LENGTH = 8192, 12, 200
SIGNALLED, MAX_SIGNAL = 128, 64  # what a shell adds to the number of the signal that ended a command
RUNNING, ENDED = "running", "ended"


def program(run_context: RunContext, job: Job, tag: str) -> Program:
    """OSError where its folder is none of its agent's workspace."""
    clone, output = run_context.layout.clone(job.agent).resolve(), run_context.layout.job_output(job.agent, job.number)
    folder = (clone / job.folder).resolve()
    if not folder.is_relative_to(clone) or not folder.is_dir():
        raise NotADirectoryError(f"there is no folder {job.folder} in the workspace")
    return Program(
        argv=job.argv,
        env=environment_of(run_context, job.agent),
        cwd=folder,
        stdin=Path(os.devnull),
        stdout=output,
        stderr=output,
        tag=tag,
        code=run_context.layout.job_code(job.agent, job.number),
    )


def show_begin(layout: Layout, job: Job) -> None:
    write_json(layout.job(job.agent, job.number), {**_record(job), "state": RUNNING}, durable=False)


def show_end(layout: Layout, action: ShowJob) -> None:
    job, end = action.job, action.end
    said = {"ended": action.ended, "seconds": round(end.seconds, 3), "code": end.code, **_ended(end)}
    write_json(layout.job(job.agent, job.number), {**_record(job), **said}, durable=False)


def put_right(layout: Layout, agent: str, jobs: Mapping[int, Job]) -> None:
    """The records of an agent's jobs that ended when their end could not be written."""
    for path in layout.logs(agent).glob(layout.job(agent, 0).name.replace("0", "*")):
        with contextlib.suppress(OSError, ValueError):
            record = parse_object(read_bytes(path))
            if record.get("state") == RUNNING and record.get("number") not in jobs:
                end = JobEnd(number=0, title="", outcome=JobOutcome.UNKNOWN)
                write_json(path, {**record, **_ended(end)}, durable=False)


def end_of(layout: Layout, job: Job, code: int | None, *, watched: bool = True) -> on.JobEnded:
    """What is to be told of a job whose whole tree is gone. `code`: None where we are not its parent; `watched`: False
    where it ended while nobody looked."""
    output = layout.job_output(job.agent, job.number)
    seen = os.path.relpath(output, layout.clone(job.agent))
    kept, ago = _kept(layout.job_code(job.agent, job.number))
    code = code if kept is None else kept
    if code is not None and SIGNALLED < code <= SIGNALLED + MAX_SIGNAL:
        code = SIGNALLED - code
    last = last_words(output)
    return on.JobEnded(number=job.number, code=code, last_lines=last, output=seen, ago=0.0 if watched else ago)


def _kept(place: Path) -> tuple[int | None, float]:
    """The code that was written down, and how many seconds ago; None where none was."""
    try:
        with open_plain(place) as file:
            return int(file.read(8)), max(time.time() - os.fstat(file.fileno()).st_mtime, 0.0)
    except (OSError, ValueError):
        return None, 0.0


def last_words(output: Path) -> tuple[str, ...]:
    """The last lines of a file, as far as they say anything: what a line wrote over itself is gone."""
    try:
        with open_plain(output) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - LAST_BYTES, 0))
            text = file.read(LAST_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ()
    lines = (one_line(line.rstrip("\r").rpartition("\r")[2], LINE_LENGTH) for line in text.split("\n"))
    return tuple(line for line in lines if line.strip())[-LAST_LINES:]


def _ended(end: JobEnd) -> dict[str, object]:
    """How a job ended, for programs and in words."""
    return {"state": ENDED, "outcome": end.outcome, "reason": reason_data(end.reason), "how": outcome_text(end)}


def _record(job: Job) -> dict[str, object]:
    return {
        "number": job.number,
        "agent": job.agent,
        "what": job.what,
        "command": list(job.argv),
        "folder": job.folder,
        "began": job.began,
    }
