"""The record of a job: what it runs, and how it stands or ended, for agents and people to read. A view."""

import contextlib
from collections.abc import Mapping

from attempts.files import parse_object, read_bytes, write_json
from coral.fleet.actions import ShowJob
from coral.fleet.agent_state import JobEnd
from coral.fleet.reasons import JobOutcome
from coral.fleet.run_state import Job
from coral.views.reasons import outcome_text, reason_data
from workspace.layout import Layout

RUNNING, ENDED = "running", "ended"


def show_begin(layout: Layout, job: Job) -> None:
    _show(layout, job, {"state": RUNNING})


def show_end(layout: Layout, action: ShowJob) -> None:
    end = action.end
    outcome = {"ended": action.ended, "seconds": round(end.seconds, 3), "code": end.code}
    _show(layout, action.job, {**outcome, **_ended(end)})


def end_lost(layout: Layout, agent: str, jobs: Mapping[int, Job]) -> None:
    """Say of an agent's jobs that they ended, where their record says that they run and the fleet knows nothing more of
    them: their end could not be written."""
    for path in layout.logs(agent).glob(layout.job(agent, 0).name.replace("0", "*")):
        with contextlib.suppress(OSError, ValueError):
            record = parse_object(read_bytes(path))
            if record.get("state") == RUNNING and record.get("number") not in jobs:
                end = JobEnd(number=0, title="", outcome=JobOutcome.UNKNOWN)
                write_json(path, {**record, **_ended(end)}, durable=False)


def _ended(end: JobEnd) -> dict[str, object]:
    """How a job ended, for programs and in words."""
    return {"state": ENDED, "outcome": end.outcome, "reason": reason_data(end.reason), "how": outcome_text(end)}


def _show(layout: Layout, job: Job, state: Mapping[str, object]) -> None:
    record = {
        "number": job.number,
        "agent": job.agent,
        "what": job.what,
        "command": list(job.argv),
        "folder": job.folder,
        "began": job.began,
    }
    write_json(layout.job(job.agent, job.number), {**record, **state}, durable=False)
