"""The file that shows how a job stands: programs read in it how it ended and why, people the same in words."""

import json
from pathlib import Path

import pytest

from coral.fleet.actions import ShowJob
from coral.fleet.agent_state import JobEnd
from coral.fleet.reasons import JobOutcome, Reason, ReasonKind
from coral.fleet.run_state import Job
from coral.views.report import alerts_in, end_lost_jobs, show_job, show_job_end
from workspace.layout import Layout

JOB = Job(number=1, agent="ann", argv=("train", "--lr", "3"), what="wide net", began="then")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.logs("ann").mkdir(parents=True)
    return made


def test_the_alerts_of_the_supervisors_before_stay(layout: Layout) -> None:
    good = {"at": "then", "type": "alert", "text": "10 of 10 failed", "id": "run-alert-1", "reason": None}
    lines = [json.dumps(line) for line in ({"type": "published", "text": "an alert"}, good, {**good, "id": 7})]
    layout.events.parent.mkdir(parents=True, exist_ok=True)
    layout.events.write_text("\n".join([*lines, '{"type": "alert", "te']))
    assert alerts_in(layout.events) == [
        {"number": 1, "id": "run-alert-1", "text": "10 of 10 failed", "reason": None, "at": "then"}
        | {"agent": None, "level": "alert"}
    ]
    assert alerts_in(layout.root / "nothing") == []


def shown(layout: Layout) -> dict[str, object]:
    found: dict[str, object] = json.loads(layout.job("ann", 1).read_text())
    return found


def test_the_end_of_a_job_is_shown_for_programs_and_in_words(layout: Layout) -> None:
    show_job(layout, JOB)
    begun = shown(layout)
    assert (begun["state"], begun["what"]) == ("running", "wide net")
    end = JobEnd(
        number=1,
        title=JOB.title,
        outcome=JobOutcome.SIGNALLED,
        code=-2,
        reason=Reason(ReasonKind.REQUEST, detail="operator"),
        seconds=1.23456,
    )
    show_job_end(layout, ShowJob(job=JOB, end=end, ended="now"))
    assert shown(layout) == {
        **begun,
        "state": "ended",
        "ended": "now",
        "seconds": 1.235,
        "code": -2,
        "outcome": "signalled",
        "reason": {"kind": "request", "detail": "operator", "text": "operator stopped it"},
        "how": "was ended by signal 2 (operator stopped it)",
    }


def test_a_job_whose_end_could_not_be_shown_is_put_right(layout: Layout) -> None:
    show_job(layout, JOB)
    end_lost_jobs(layout, "ann", {1: JOB})
    assert shown(layout)["state"] == "running"
    end_lost_jobs(layout, "ann", {})
    assert {**shown(layout), "began": ""} == {
        "number": 1,
        "agent": "ann",
        "what": "wide net",
        "command": ["train", "--lr", "3"],
        "folder": "",
        "began": "",
        "state": "ended",
        "outcome": "unknown",
        "reason": None,
        "how": "ended; its exit code is not known",
    }


def test_a_record_that_is_none_of_a_job_hinders_no_resume(layout: Layout) -> None:
    layout.job("ann", 1).write_text('{"state": "running", "number": []}')
    end_lost_jobs(layout, "ann", {1: JOB})
    assert shown(layout)["state"] == "ended"
