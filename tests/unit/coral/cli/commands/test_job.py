"""`coral job` as a command: what it asks for, and how it reads the records of jobs."""

import json
from collections.abc import Callable

import pytest
from sample import requests_of

from attempts.files import write_json
from coral.cli.commands import job
from coral.cli.run_data import send_request
from coral.fleet.reasons import JobOutcome
from coral.supervisor.lock import hold_lock
from workspace.layout import Layout

Run = Callable[..., tuple[int, str, str]]
DEADLINE = 120.0  # seconds: what takes longer has failed, on any machine


@pytest.fixture(autouse=True)
def in_the_workspace(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(layout.clone("agent-1"))


def requests(layout: Layout) -> list[dict[str, object]]:
    return requests_of(layout, "agent-1")


def write_record(layout: Layout, **end: object) -> None:
    record = {"number": 1, "agent": "agent-1", "command": ["train"], "began": "", "state": "running", **end}
    write_json(layout.job("agent-1", 1), record, durable=False)


@pytest.mark.parametrize(
    ("said", "command"),
    [
        (["python", "train.py", "--lr", "3"], ["python", "train.py", "--lr", "3"]),
        (["--", "python", "train.py", "-m", "x"], ["python", "train.py", "-m", "x"]),
        (["env", "--", "--run"], ["env", "--", "--run"]),
    ],
)
def test_options_after_the_command_belong_to_it(
    layout: Layout, coral: Run, said: list[str], command: list[str]
) -> None:
    assert coral("job", "start", "-m", "wide net", *said)[0] == 0
    (asked,) = requests(layout)
    assert (asked["command"], asked["what"]) == (command, "wide net")


def test_a_job_needs_a_command_and_an_unknown_one_is_neither_waited_for_nor_stopped(layout: Layout, coral: Run) -> None:
    code, _, err = coral("job", "start", "-m", "wide net")
    assert (code, "arguments are required: COMMAND" in err) == (1, True)
    assert requests(layout) == []
    for verb in ("wait", "stop"):
        code, _, err = coral("job", verb, "7")
        assert (code, "cannot find job 7: there is none of yours" in err) == (1, True)
    assert requests(layout) == []
    write_record(layout)
    assert coral("job", "stop", "1")[0] == 0


@pytest.mark.parametrize("verb", ["wait", "log"])
def test_a_job_without_a_record_yet_is_waited_for(
    layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def pass_time(_: float) -> None:
        write_record(layout, state="ended", code=0, outcome="succeeded", how="ended well")

    monkeypatch.setattr(job, "BEGINNING", DEADLINE)
    monkeypatch.setattr(send_request.time, "sleep", pass_time)
    with hold_lock(layout.lock):
        code, out, _ = coral("job", verb, "1")
    assert (code, out.startswith("job 1")) == (0, True)


@pytest.mark.parametrize("verb", ["wait", "log"])
def test_an_agent_that_sees_the_end_of_its_job_acknowledges_it(
    layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    write_record(layout)
    coral("job", verb, "1", *(["--timeout", "0"] if verb == "wait" else []))
    assert requests(layout) == []
    write_record(layout, state="ended", code=0, outcome="succeeded", how="ended well")
    for launch in ("", "run-1/job-2/1"):  # a person in its clone, another one of its jobs
        monkeypatch.setenv("CORAL_LAUNCH", launch)
        assert coral("job", verb, "1")[0] == 0
        assert requests(layout) == []
    monkeypatch.setenv("CORAL_LAUNCH", "run-1/agent-1/3")
    assert coral("job", verb, "1")[0] == 0
    assert requests(layout) == [{"type": "acknowledge", "jobs": [1]}]
    monkeypatch.chdir(layout.root)
    assert coral("job", verb, "1")[0] == 0
    assert len(requests(layout)) == 1


@pytest.mark.parametrize(
    ("code", "outcome", "answer"),
    [
        (0, JobOutcome.SUCCEEDED, 0),
        (3, JobOutcome.FAILED, 1),
        (None, JobOutcome.NOT_STARTED, 1),
        (None, JobOutcome.UNKNOWN, 4),
    ],
)
def test_the_exit_code_says_how_a_job_ended(
    layout: Layout, coral: Run, code: int | None, outcome: JobOutcome, answer: int
) -> None:
    write_record(layout, state="ended", code=code, outcome=outcome, how="in any words")
    assert coral("job", "wait", "1")[0] == answer


def test_json_of_a_job_is_the_same_everywhere(layout: Layout, coral: Run) -> None:
    write_record(layout, state="ended", code=3, how="ended with exit code 3", seconds=2.0)
    (listed,) = json.loads(coral("job", "list", "--json")[1])
    layout.job_output("agent-1", 1).write_text("one\ntwo\n")
    code, out, _ = coral("job", "wait", "1", "--json")
    assert (code, json.loads(out)) == (1, listed)
    log = json.loads(coral("job", "log", "1", "-n", "1", "--json")[1])
    output = str(layout.job_output("agent-1", 1))
    assert log == {**listed, "output": output, "size": 8, "lines": ["two"]}


def test_json_goes_before_the_command_of_a_job(layout: Layout, coral: Run) -> None:
    code, out, _ = coral("job", "start", "--json", "-m", "wide net", "train", "--json")
    (asked,) = requests(layout)
    assert asked["command"] == ["train", "--json"]
    told = json.loads(out)
    assert (code, told["run"], told["answered"]) == (0, layout.root.name, False)
    write_record(layout)
    assert json.loads(coral("job", "stop", "1", "--json")[1])["answered"] is False
    assert json.loads(coral("job", "wait", "1", "--timeout", "0", "--json")[1])["state"] == "running"
