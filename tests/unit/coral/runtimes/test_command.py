"""Any program, by the command lines and patterns of a task."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from launch_specs import launch_spec

from coral.runtimes.command import AnyProgram
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent

KNOWN: Mapping[str, object] = {"start": "agent --new", "resume": "agent --go {session}"}


def test_placeholders_are_replaced_once_and_other_braces_stay() -> None:
    template = ["a b", '{"m": "{model}"}', "{agent}/{session}", "{prompt_file}", "{state}{clone}", "{other} {}"]
    made = AnyProgram({"start": template}).command(launch_spec(model="m-1"))
    assert made.argv == (
        "a b",
        '{"m": "m-1"}',
        f"agent-1/{made.session}",
        "/runs/t/20250101-000000-abcd/logs/agent-1/0002.prompt.md",
        f"{launch_spec().state}{launch_spec().clone}",
        "{other} {}",
    )
    strange = AnyProgram({"start": "x {session}", "resume": "x {session}"}).command(launch_spec("{model}", model="m-1"))
    assert strange.argv == ("x", "{model}")
    assert AnyProgram({"start": "x -m 'a b'"}).command(launch_spec()).argv == ("x", "-m", "a b")


def test_without_a_resume_command_every_launch_is_a_new_conversation() -> None:
    runtime = AnyProgram({"start": "agent --id {session}"})
    assert not runtime.resumes
    assert runtime.command(launch_spec("old")).argv == ("agent", "--id", runtime.command(launch_spec()).session)
    resuming = AnyProgram({**KNOWN, "session_pattern": "id (?P<session>.+)"})
    assert resuming.resumes
    assert resuming.command(launch_spec("old")) == resuming.command(launch_spec("old", launch=9))
    assert resuming.command(launch_spec("old")).argv == ("agent", "--go", "old")
    assert resuming.command(launch_spec()).session == "", "it is the program that names the conversation"


def test_patterns_find_session_reply_and_limit_in_the_output() -> None:
    runtime = AnyProgram(
        {
            **KNOWN,
            "session_pattern": r'"thread": "(?P<session>[^"]+)"',
            "reply_pattern": r"^says: (?P<reply>.*)",
            "limit_pattern": r"limit reached(, retry in (?P<seconds>\d+) s|, until (?P<until>\S+))?",
        }
    )
    assert runtime.read(b'{"thread": "t-1"}\n')[0].session == "t-1"
    assert runtime.read(b"says: HEARTBEAT_OK\n")[0].reply == "HEARTBEAT_OK"
    assert runtime.read(b"thinking\n") == (OutputEvent(message="thinking"),)
    assert runtime.read(b" \n") == ()
    moment = datetime.fromtimestamp(time.time() + 3600, UTC)
    for until in (moment.isoformat(), moment.timestamp(), moment.timestamp() * 1000):
        (event,) = runtime.read(f"limit reached, until {until}".encode())
        assert event.limit_until == pytest.approx(moment.timestamp(), abs=1)
    for line, seconds in ((b", retry in 60 s", 60), (b"", 900), (b", until never", 900)):
        before = time.time()
        until = runtime.read(b"limit reached" + line)[0].limit_until
        assert until is not None
        assert before + seconds <= until <= time.time() + seconds
    assert AnyProgram({"start": "x"}).read("é\x1b[0m ok\n".encode())[0] == OutputEvent(
        message="é[0m ok", reply="é[0m ok"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"strat": "true"}, "there is no option 'strat'; did you mean start?"),
        ({}, "start is empty"),
        ({"start": []}, "start is empty"),
        ({"start": [1]}, "start must be a list of texts, or a line"),
        ({"start": 'true "x'}, "No closing quotation"),
        ({"start": "no-such-program-anywhere"}, "'no-such-program-anywhere' is not on PATH"),
        ({"start": "true", "resume": "/no/such/program"}, "'/no/such/program' is not on PATH"),
        ({"start": "true", "resume": "true {session}"}, "resume needs {session}"),
        ({"start": "true", "session_pattern": "(?P<session>"}, "session_pattern is no regular expression"),
        ({"start": "true", "session_pattern": "id"}, "session_pattern needs a group named session"),
        ({"start": "true", "limit_pattern": "(?P<when>.)"}, "has a group 'when'; it knows until, seconds"),
        ({"start": "true", "reply_pattern": 3}, "reply_pattern must be a pattern"),
        ({"start": "true", "instruction_file": "../X.md"}, "instruction_file must be a path inside the workspace"),
    ],
)
def test_wrong_options_are_found_before_anything_is_started(options: Mapping[str, object], problem: str) -> None:
    problems = AnyProgram(options).check()
    assert any(problem in found for found in problems), problems


def test_right_options_have_no_problems() -> None:
    full = {"start": ["true", "{session}"], "resume": "true {session}", "limit_pattern": "limit"}
    full["instruction_file"] = "X.md"
    assert AnyProgram(full).check() == []
    assert AnyProgram(full).instruction_file == "X.md"
    assert AnyProgram({"start": "{clone}/agent.sh"}).check() == []


def test_a_program_is_judged_by_its_exit_code_and_its_stderr() -> None:
    runtime = AnyProgram({**KNOWN, "limit_pattern": "limit reached"})
    assert runtime.judge(127, LaunchSummary()) is Ending.TERMINAL
    assert runtime.judge(1, LaunchSummary(stderr="error: limit reached")) is Ending.LIMIT
    for text in ("No conversation found with session ID: x", "Error: thread x not found", "Unknown session x"):
        assert runtime.judge(1, LaunchSummary(stderr=text)) is Ending.UNKNOWN_SESSION
        assert runtime.judge(1, LaunchSummary(stderr=text, output=True)) is Ending.CRASHED
        assert AnyProgram({"start": "x"}).judge(1, LaunchSummary(stderr=text)) is Ending.CRASHED
    assert runtime.judge(1, LaunchSummary(stderr="out of memory in this session")) is Ending.CRASHED
